// Examples in memory, given or drawn.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/model/config.h"
#include "lib/model/example.h"
#include "lib/util/rng.h"

namespace lra {

class VectorSource : public ExampleSource {
 public:
  explicit VectorSource(std::vector<Example> examples) : examples_(std::move(examples)) {}
  int64_t size() const override { return static_cast<int64_t>(examples_.size()); }
  Example get(int64_t index) const override { return examples_.at(static_cast<size_t>(index)); }

 private:
  std::vector<Example> examples_;
};

// Rows of up to max_length places, one in eight of them padding, of every length from empty to full.
inline std::vector<Example> random_examples(const ModelConfig& config, int count, uint64_t seed) {
  Random random(seed, RandomStream::kData);
  const auto sequence = [&] {
    std::vector<int32_t> ids(random.below(static_cast<uint32_t>(config.max_length) + 1));
    for (int32_t& id : ids) {
      id = random.below(8) == 0 ? 0
                                : 1 + static_cast<int32_t>(random.below(static_cast<uint32_t>(config.vocabulary) - 2));
    }
    if (config.pooling == "cls") ids.insert(ids.begin(), config.vocabulary - 1);
    return make_sequence(ids);
  };
  std::vector<Example> examples(static_cast<size_t>(count));
  for (Example& example : examples) {
    example.first = sequence();
    if (config.pair) example.second = sequence();
    example.label = static_cast<int32_t>(random.below(static_cast<uint32_t>(config.classes)));
  }
  return examples;
}

}  // namespace lra
