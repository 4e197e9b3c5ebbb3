// Square features of a vector: phi(x) = (x_i x_j) for i <= j, the F = D (D + 1) / 2 entries of x ⊗ x that do not repeat
// (the symmetric tensor square). (q·k)^2 = sum_f w_f phi_f(q) phi_f(k) exactly, with weights w_f = 1 for i = j and 2
// elsewhere; they are powers of two and belong to one side of a product, so that they cost no rounding.
// Tokens are columns here: one feature of neighbouring tokens is one vector whatever D is, and the gradient needs no
// sums across lanes.
#pragma once

#include <cstdint>

#include "lib/tensor/view.h"

namespace lra {

inline int64_t square_feature_count(int64_t d) { return d * (d + 1) / 2; }

// weights (F).
void square_feature_weights(int64_t d, float* weights);

// panels: X (N, D) as pack_transposed leaves it. features (F, padded_columns(N)); those of columns beyond N are 0.
void square_features(const float* panels, int64_t d, Matrix features);

// dx (D, padded_columns(N)), overwritten, from the gradient of the features (F, padded_columns(N)).
void square_features_backward(const float* panels, ConstMatrix d_features, Matrix dx);

}  // namespace lra
