// The seam between attention families of the first kind, P = f(S, row statistics, n), and the drivers that run them.
// A family maps one row of scores to weights and back; it never writes a loop over queries, never sees padding (rows
// hold real keys only) and never handles dropout. Drivers do (row_panel.h).
#pragma once

#include <cstdint>
#include <span>

#include "lib/attention/attention.h"

namespace lra {

// One query's row.
struct ScoreRow {
  int64_t keys;  // n, the entries of the row
  int head;
  std::span<const float* const> parameters;  // as AttentionInput::parameters
};

class ScoreActivation {
 public:
  virtual ~ScoreActivation() = default;

  // Floats a row that forward leaves for backward, at least 1: the first is the row's factor.
  virtual int statistics() const = 0;

  // s: scores x_j -> unscaled weights e_j, with P_j = statistics[0] * e_j. The driver applies the factor to the output
  // (D numbers) instead of the row (n numbers).
  virtual void forward(const ScoreRow& row, float* s, float* statistics) const = 0;

  // s: scores x_j -> e_j again. g: statistics[0] * dL/dP_j -> dL/dx_j. row_dot = sum_j P_j dL/dP_j.
  // d_parameters as AttentionGradients::d_parameters, added to.
  virtual void backward(const ScoreRow& row, const float* statistics, float row_dot, float* s, float* g,
                        std::span<float* const> d_parameters) const = 0;
};

}  // namespace lra
