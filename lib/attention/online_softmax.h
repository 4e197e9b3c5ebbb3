// Softmax of a function of the scores, z_j = z(x_j), in one pass over tiles of keys: a running maximum and sum (Milakov
// & Gimelshein 2018, "Online normalizer calculation for softmax"). Rows' loops: online_softmax-inl.h. Statistics of a
// row: 1 / sum of exp(z - max) (while gathered: the sum), max.
#pragma once

#include <limits>

#include "lib/attention/score_activation.h"

namespace lra {

inline void online_softmax_begin(const ScoreTile& rows, float* statistics) {
  for (int64_t i = 0; i < rows.s.rows; ++i) {
    statistics[2 * i] = 0.0f;
    statistics[2 * i + 1] = std::numeric_limits<float>::lowest();
  }
}
inline void online_softmax_end(const ScoreTile& rows, float* statistics) {
  for (int64_t i = 0; i < rows.s.rows; ++i) statistics[2 * i] = 1.0f / statistics[2 * i];
}

class OnlineSoftmax : public ScoreActivation {
 public:
  int statistics() const override { return 2; }
  void forward_begin(const ScoreTile& rows, float* statistics) const override {
    online_softmax_begin(rows, statistics);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override { online_softmax_end(rows, statistics); }
};

// Those of z = x, for families that differ from softmax around the rows alone (softmax.cpp).
void softmax_rows_forward(const ScoreTile& tile, float* statistics, float* earlier);
void softmax_rows_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g);

// Rows of weights p_j = a(x_j) / Σ a: ∂p_j/∂x_k = w_k ([j = k] - p_j) with w_k = a'(x_k) / Σ a (softmax: p_k
// dz_k/dx_k), so that the sum of squares is Σ_k w_k² (1 - 2 p_k + Σ p²). w(k). `whole`: the row sums to 1; then the
// rounding that all of it shares is taken out, so that rows of a single weight have a Jacobian of 0.
template <class W>
double ratio_jacobian_square(const float* p, int64_t n, const W& w, bool whole = true) {
  double total = 0.0, squares = 0.0, sum = 0.0;
  for (int64_t k = 0; k < n; ++k) {
    total += p[k];
    squares += static_cast<double>(p[k]) * p[k];
  }
  const double scale = whole ? 1.0 / total : 1.0;
  for (int64_t k = 0; k < n; ++k) {
    const double slope = w(k);
    sum += slope * slope * (1.0 - 2.0 * scale * p[k] + scale * scale * squares);
  }
  return sum;
}

}  // namespace lra
