#include "datasets/statistics.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <numeric>
#include <unordered_set>

#include "lib/util/check.h"

namespace lra {
namespace {

// XXH64 (seed 0) of examples written as int32, little endian: of all together, and of each alone.
class IdHash {
 public:
  IdHash() : state_(XXH64_createState(), &XXH64_freeState) {
    if (!state_) throw std::bad_alloc();
    XXH64_reset(state_.get(), 0);
  }

  uint64_t value() const { return XXH64_digest(state_.get()); }

  void add(const DataExample& example, bool pair) {
    words_.clear();
    words_.push_back(example.label);
    add_ids(example.ids);
    if (pair) add_ids(example.ids2);
    if constexpr (std::endian::native == std::endian::big) {
      for (int32_t& word : words_) word = static_cast<int32_t>(__builtin_bswap32(static_cast<uint32_t>(word)));
    }
    XXH64_update(state_.get(), words_.data(), words_.size() * sizeof(int32_t));
  }

  // Of the example added last.
  uint64_t of_last() const { return XXH64(words_.data(), words_.size() * sizeof(int32_t), 0); }

 private:
  void add_ids(const std::vector<int32_t>& ids) {
    words_.push_back(static_cast<int32_t>(ids.size()));
    words_.insert(words_.end(), ids.begin(), ids.end());
  }

  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state_;
  std::vector<int32_t> words_;
};

int64_t real_tokens(const std::vector<int32_t>& ids) { return std::ssize(ids) - std::count(ids.begin(), ids.end(), 0); }

int64_t first_examples(const DataSplit& split, int64_t limit) {
  return limit > 0 ? std::min(limit, split.size()) : split.size();
}

}  // namespace

const char* split_name(Split split) {
  switch (split) {
    case Split::kTrain: return "train";
    case Split::kValidation: return "validation";
    case Split::kTest: return "test";
  }
  return "unknown";
}

uint64_t split_hash(const DataSplit& split, int64_t limit) {
  IdHash hash;
  const int64_t count = first_examples(split, limit);
  for (int64_t i = 0; i < count; ++i) hash.add(split.get(i), split.pair());
  return hash.value();
}

SplitStatistics split_statistics(const DataSplit& split, int64_t limit) {
  SplitStatistics result;
  result.examples = first_examples(split, limit);
  IdHash hash;
  result.hash = hash.value();
  if (result.examples == 0) return result;
  result.example_hashes.reserve(static_cast<size_t>(result.examples));
  std::vector<int64_t> lengths;
  lengths.reserve(static_cast<size_t>(result.examples));
  for (int64_t i = 0; i < result.examples; ++i) {
    const DataExample example = split.get(i);
    check(example.label >= 0, "example {} has the label {}", i, example.label);
    hash.add(example, split.pair());
    result.example_hashes.push_back(hash.of_last());
    lengths.push_back(real_tokens(example.ids) + real_tokens(example.ids2));
    const auto label = static_cast<size_t>(example.label);
    if (label >= result.label_counts.size()) result.label_counts.resize(label + 1);
    ++result.label_counts[label];
  }
  result.hash = hash.value();
  std::sort(lengths.begin(), lengths.end());
  const auto rank = [&](int64_t percent) { return lengths[(result.examples * percent + 99) / 100 - 1]; };
  const auto sum = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  result.length = {.min = lengths.front(),
                   .median = rank(50),
                   .mean = sum / static_cast<double>(result.examples),
                   .p95 = rank(95),
                   .max = lengths.back()};
  const int64_t most = *std::max_element(result.label_counts.begin(), result.label_counts.end());
  result.majority_share = static_cast<double>(most) / static_cast<double>(result.examples);
  return result;
}

int64_t also_in_train(const SplitStatistics& train, const SplitStatistics& split) {
  const std::unordered_set<uint64_t> known(train.example_hashes.begin(), train.example_hashes.end());
  return std::count_if(split.example_hashes.begin(), split.example_hashes.end(),
                       [&](uint64_t hash) { return known.contains(hash); });
}

int64_t also_in_train(const DataSplit& train, const DataSplit& split) {
  return also_in_train(split_statistics(train), split_statistics(split));
}

}  // namespace lra
