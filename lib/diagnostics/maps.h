// Attention matrices of one example, reduced to the size of a picture: rows of P are visited one after another, and
// blocks of entries become their mean.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/model/classifier.h"

namespace lra {

struct AttentionMap {
  int sequence = 0;  // 1: the second of a pair
  int layer = 0, head = 0;
  int64_t tokens = 0;              // N
  int64_t block = 1;               // a value is the mean of block x block entries, fewer at the ends
  int64_t side = 0;                // values a row, ceil(N / block)
  std::vector<float> values = {};  // (side, side): query by key; NaN: none of the entries is there (causal)

  float at(int64_t query, int64_t key) const { return values[static_cast<size_t>(query * side + key)]; }
};

// Sequence by sequence, layer by layer, head by head, each with at most `most` values a side; none of an empty
// sequence, none where attention has no matrix P. result: of the evaluation.
std::vector<AttentionMap> attention_maps(const Classifier& model, const Example& example, int64_t most, Arena& arena,
                                         ExampleResult& result);

// The same with every factor x factor values as one, their mean.
AttentionMap reduced(const AttentionMap& map, int64_t factor);

}  // namespace lra
