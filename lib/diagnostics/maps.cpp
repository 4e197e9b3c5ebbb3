#include "lib/diagnostics/maps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lra {
namespace {

// Means of blocks of entries that come row by row.
class BlockMeans {
 public:
  BlockMeans(AttentionMap& map) : map_(map), sums_(static_cast<size_t>(map.side * map.side)), counts_(sums_.size()) {}

  void add(int64_t query, std::span<const float> weights) {
    double* sums = sums_.data() + query / map_.block * map_.side;
    int64_t* counts = counts_.data() + query / map_.block * map_.side;
    for (int64_t key = 0; key < std::ssize(weights); ++key) {
      sums[key / map_.block] += weights[static_cast<size_t>(key)];
      ++counts[key / map_.block];
    }
  }

  void finish() {
    map_.values.resize(sums_.size());
    for (size_t i = 0; i < sums_.size(); ++i) {
      map_.values[i] = counts_[i] == 0 ? std::numeric_limits<float>::quiet_NaN()
                                       : static_cast<float>(sums_[i] / static_cast<double>(counts_[i]));
    }
  }

 private:
  AttentionMap& map_;
  std::vector<double> sums_;
  std::vector<int64_t> counts_;
};

class MapCollector final : public AttentionObserver {
 public:
  explicit MapCollector(int64_t most) : most_(most) {}

  void attention(const AttentionKernel& kernel, const AttentionInput& in, Arena& arena) override {
    if (!kernel.has_weights()) return;
    const int64_t n = in.q.rows, block = (n + most_ - 1) / most_;
    const auto heads = static_cast<size_t>(kernel.shape().heads);
    const size_t first = maps.size();
    for (size_t head = 0; head < heads; ++head) {
      maps.push_back({.sequence = static_cast<int>(in.example),
                      .layer = in.layer,
                      .head = static_cast<int>(head),
                      .tokens = n,
                      .block = block,
                      .side = (n + block - 1) / block});
    }
    std::vector<BlockMeans> means;
    for (size_t head = 0; head < heads; ++head) means.emplace_back(maps[first + head]);
    kernel.visit_weights(
        in, arena, [&](const WeightRow& row) { means[static_cast<size_t>(row.head)].add(row.query, row.weights); });
    for (BlockMeans& mean : means) mean.finish();
  }

  std::vector<AttentionMap> maps;

 private:
  int64_t most_;
};

}  // namespace

std::vector<AttentionMap> attention_maps(const Classifier& model, const Example& example, int64_t most, Arena& arena,
                                         ExampleResult& result) {
  MapCollector collector(most);
  result = model.evaluate(example, arena, nullptr, &collector);
  return std::move(collector.maps);
}

AttentionMap reduced(const AttentionMap& map, int64_t factor) {
  if (factor <= 1) return map;
  AttentionMap small = map;
  small.block = map.block * factor;
  small.side = (map.side + factor - 1) / factor;
  small.values.clear();
  for (int64_t query = 0; query < small.side; ++query) {
    for (int64_t key = 0; key < small.side; ++key) {
      double sum = 0.0;
      int64_t count = 0;
      for (int64_t q = query * factor; q < std::min(map.side, (query + 1) * factor); ++q) {
        for (int64_t k = key * factor; k < std::min(map.side, (key + 1) * factor); ++k) {
          if (std::isnan(map.at(q, k))) continue;
          sum += map.at(q, k);
          ++count;
        }
      }
      small.values.push_back(count == 0 ? std::numeric_limits<float>::quiet_NaN()
                                        : static_cast<float>(sum / static_cast<double>(count)));
    }
  }
  return small;
}

}  // namespace lra
