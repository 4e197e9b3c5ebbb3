// The sums that norms are made of, gathered while an example runs through the model. Internal to this room.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "lib/diagnostics/norms.h"

namespace lra {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
// Nobody added to such a sum: adding even 0 would make it +0.
inline constexpr double kUntouched = -0.0;

// Over the rows of one matrix P; 0 tokens: there is none.
struct MatrixSums {
  int64_t tokens = 0;
  int64_t rows = 0, entries = 0;
  double square_sum = 0.0;
  double jacobian_square = 0.0;
  double max_score = kUndefined;
  double entropy = 0.0;      // of the rows that are not all 0
  int64_t entropy_rows = 0;  // their number
  int64_t saturated = 0, negative = 0;

  void add(const WeightRow& row);
};

// The matrices of one example.
class ExampleSums final : public AttentionObserver {
 public:
  ExampleSums() = default;
  ExampleSums(int sequences, int layers, int heads);

  void attention(const AttentionKernel& kernel, const AttentionInput& in, Arena& arena) override;
  double* score_gradient_squares(const AttentionInput& in) override;

  int sequences() const { return sequences_; }
  size_t index(int sequence, int layer, int head) const {
    return (static_cast<size_t>(sequence) * layers_ + static_cast<size_t>(layer)) * heads_ + static_cast<size_t>(head);
  }
  const MatrixSums& matrix(size_t i) const { return matrices_[i]; }
  double score_gradient_square(size_t i) const { return gradient_squares_[i]; }

 private:
  int sequences_ = 0;
  size_t layers_ = 0, heads_ = 0;
  std::vector<MatrixSums> matrices_;
  std::vector<double> gradient_squares_;
};

// Of one layer and head, in the order of the examples.
AttentionNorms summarise_norms(std::span<const ExampleSums> examples, int layer, int head);

}  // namespace lra
