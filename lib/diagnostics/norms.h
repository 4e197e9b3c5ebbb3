// Norms of attention over given examples, a layer and head each: what the attention matrices P = f(S) of a model look
// like and how steep they are, in evaluation mode. Rows of P are visited one after another; no N x N matrix is kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/model/classifier.h"
#include "lib/tensor/fork.h"
#include "lib/util/json.h"

namespace lra {

// Over the matrices of one layer and head: one an example, two an example of pairs (either document), none where a
// sequence has no token. Means are over matrices, but entropy, saturated_share and negative_share are over all their
// rows and entries. NaN: not defined, for this kind of attention or without a matrix.
struct AttentionNorms {
  int layer = 0, head = 0;
  int64_t matrices = 0;
  double frobenius_mean;        // of ‖P‖
  double frobenius_std;         // of the sample (divisor matrices - 1); NaN for a single matrix
  double frobenius_per_sqrt_n;  // mean of ‖P‖ / √N
  double jacobian;              // mean of ‖dP/dS‖, where each row has a closed form
  double score_gradient;        // mean of ‖dL/dS‖, L the loss of the example alone
  double max_score;             // largest |S| of all
  double entropy;               // of the rows of |P| divided by their sum, nats; rows of zeros are left out
  double saturated_share;       // of rows whose largest |p| exceeds 0.99 of their absolute sum
  double negative_share;        // of entries below 0
};

// Layer by layer, head by head. fork: threads; the result is the same without.
std::vector<AttentionNorms> measure_norms(const Classifier& model, std::span<const Example> examples,
                                          const Fork* fork = nullptr);

// A line of norms.jsonl; NaN and what is not finite are null, jacobian_exact is true where there is a jacobian.
Json norms_to_json(const AttentionNorms& norms, int64_t step);

}  // namespace lra
