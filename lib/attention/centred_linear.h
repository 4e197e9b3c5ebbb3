// nap and inline in time linear in the number of tokens, exact. With k̄ the mean key, Kc = K - k̄, A = Kcᵀ V (D, D):
//   inline: o_i = A^T q_i / (n sqrt(D)) + v̄;
//   nap: o_i = γ A^T q_i / (sd_i + 1e-3) + b Σ_j v_j with sd_i² = q_i^T C q_i, C = Kcᵀ Kc / n.
// The centred covariance, not a difference of moments: small deviations keep their digits. Causal rows take sums over
// the keys before them (centred_causal.cpp). P does not exist, so that attention dropout cannot apply.
#pragma once

#include <functional>
#include <memory>

#include "lib/attention/attention.h"

namespace lra {

enum class CentredLinear { kInline, kNap };

AttentionOption centred_form_option();

constexpr float kNapEpsilon = 1e-3f;  // added to the deviation

// What the spec's form asks for: the quadratic kernel, the linear one, or a choice for each sequence.
using QuadraticMaker = std::function<std::unique_ptr<AttentionKernel>()>;
std::unique_ptr<AttentionKernel> choose_centred_form(CentredLinear family, const QuadraticMaker& make_quadratic);

// The linear kernel of causal rows, of the shape and parameters of the quadratic one.
std::unique_ptr<AttentionKernel> make_centred_causal(CentredLinear family, const AttentionKernel& quadratic);

}  // namespace lra
