// Polynomial attention of power 1 and 2 in time linear in the number of tokens, exact: with features phi of F numbers
// and weights w such that (q·k)^q = sum_f w_f phi_f(q) phi_f(k),
//   O = phi(Q) M,  M = gain / (c D^(q/2)) w ⊙ (phi(K)^T V)  (F, D).
// Power 1: phi(x) = x, F = D. Power 2: the symmetric tensor square, F = D (D + 1) / 2 (square_features.h). There is no
// denominator ("Rethinking Softmax: Self-Attention with Polynomial Activations", arXiv 2410.18613).
// Features of a chunk of tokens live in the second level of cache and are made again in the backward pass; chunks have
// a fixed size and are summed in their order. Causal rows go through the driver of feature maps (feature_map.h). P does
// not exist, so that attention dropout cannot apply.
#pragma once

#include "lib/attention/polynomial.h"

namespace lra {

constexpr int kLargestLinearPower = 2;

// form=linear; norms and maps are those of the quadratic form.
std::unique_ptr<AttentionKernel> polynomial_linear(const AttentionSpec& spec, const AttentionShape& shape);

}  // namespace lra
