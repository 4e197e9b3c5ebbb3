#include "datasets/statistics.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <unordered_set>

#include "lib/util/check.h"

namespace lra {
namespace {

// XXH64 (seed 0) of a stream of int32 written little endian.
class IdHash {
 public:
  IdHash() : state_(XXH64_createState(), &XXH64_freeState) {
    if (!state_) throw std::bad_alloc();
    reset();
  }

  void reset() { XXH64_reset(state_.get(), 0); }
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

 private:
  void add_ids(const std::vector<int32_t>& ids) {
    words_.push_back(static_cast<int32_t>(ids.size()));
    words_.insert(words_.end(), ids.begin(), ids.end());
  }

  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state_;
  std::vector<int32_t> words_;
};

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
  if (result.examples == 0) return result;
  std::vector<int64_t> lengths;
  lengths.reserve(static_cast<size_t>(result.examples));
  for (int64_t i = 0; i < result.examples; ++i) {
    const DataExample example = split.get(i);
    check(example.label >= 0, "example {} has the label {}", i, example.label);
    lengths.push_back(static_cast<int64_t>(example.ids.size() + example.ids2.size()));
    const auto label = static_cast<size_t>(example.label);
    if (label >= result.label_counts.size()) result.label_counts.resize(label + 1);
    ++result.label_counts[label];
  }
  std::sort(lengths.begin(), lengths.end());
  const auto rank = [&](int64_t percent) { return lengths[(result.examples * percent + 99) / 100 - 1]; };
  result.length = {lengths.front(), rank(50), rank(95), lengths.back()};
  const int64_t most = *std::max_element(result.label_counts.begin(), result.label_counts.end());
  result.majority_share = static_cast<double>(most) / static_cast<double>(result.examples);
  return result;
}

int64_t also_in_train(const DataSplit& train, const DataSplit& split) {
  IdHash hash;
  const auto hash_of = [&](const DataSplit& of, int64_t index) {
    hash.reset();
    hash.add(of.get(index), of.pair());
    return hash.value();
  };
  // The smaller side is kept: test splits are a fraction of the training rows.
  std::unordered_multiset<uint64_t> wanted;
  for (int64_t i = 0; i < split.size(); ++i) wanted.insert(hash_of(split, i));
  int64_t shared = 0;
  for (int64_t i = 0; i < train.size() && !wanted.empty(); ++i) {
    shared += static_cast<int64_t>(wanted.erase(hash_of(train, i)));
  }
  return shared;
}

}  // namespace lra
