// Figures of a split that a record shows beside its accuracy: how long its examples are, what always guessing the
// commonest class would score, and how much of a test split was seen in training.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/example.h"

namespace lra {

// Tokens per example that are not padding (both documents together in pair tasks). median and p95 are nearest ranks:
// the smallest length that at least 50 % and 95 % of the examples do not exceed. All 0 for a split without examples.
struct LengthStatistics {
  int64_t min = 0;
  int64_t median = 0;
  double mean = 0.0;
  int64_t p95 = 0;
  int64_t max = 0;
};

struct SplitStatistics {
  int64_t examples = 0;
  LengthStatistics length;
  std::vector<int64_t> label_counts;     // indexed by label, up to the largest that occurs
  double majority_share = 0.0;           // share of the commonest label; 0 without examples
  uint64_t hash = 0;                     // split_hash of these examples
  std::vector<uint64_t> example_hashes;  // XXH64 of each alone
};

// Over the first `limit` examples, 0 = all. Reads every example once: a split may lie on disk, and be large. Whoever
// wants the hash and the shared rows too takes them from here:
//   const SplitStatistics train = split_statistics(train_rows), test = split_statistics(test_rows);
//   test.hash; also_in_train(train, test);
SplitStatistics split_statistics(const DataSplit& split, int64_t limit = 0);

// How many examples of `split` are also in `train`: equal label and ids, found by their XXH64.
int64_t also_in_train(const SplitStatistics& train, const SplitStatistics& split);
int64_t also_in_train(const DataSplit& train, const DataSplit& split);  // reads both

}  // namespace lra
