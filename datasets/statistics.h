// Figures of a split that a record shows beside its accuracy: how long its examples are, what always guessing the
// commonest class would score, and how much of a test split was seen in training.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/example.h"

namespace lra {

// Ids per example (both documents together in pair tasks). median and p95 are nearest ranks: the smallest length that
// at least 50 % and 95 % of the examples do not exceed. All 0 for a split without examples.
struct LengthStatistics {
  int64_t min = 0;
  int64_t median = 0;
  int64_t p95 = 0;
  int64_t max = 0;
};

struct SplitStatistics {
  int64_t examples = 0;
  LengthStatistics length;
  std::vector<int64_t> label_counts;  // indexed by label, up to the largest that occurs
  double majority_share = 0.0;        // share of the commonest label; 0 without examples
};

// Over the first `limit` examples, 0 = all.
SplitStatistics split_statistics(const DataSplit& split, int64_t limit = 0);

// How many examples of `split` are also in `train`: equal label and ids, found by their XXH64.
int64_t also_in_train(const DataSplit& train, const DataSplit& split);

}  // namespace lra
