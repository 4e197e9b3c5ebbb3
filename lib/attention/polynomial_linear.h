// Polynomial attention of power 1 and 2 in time linear in the number of tokens, exact: with features phi of F numbers
// and weights w such that (q·k)^q = sum_f w_f phi_f(q) phi_f(k),
//   O = phi(Q) M,  M = gain / (c D^(q/2)) w ⊙ (phi(K)^T V)  (F, D).
// Power 1: phi(x) = x, F = D. Power 2: the symmetric tensor square, F = D (D + 1) / 2 (square_features.h). There is no
// denominator ("Rethinking Softmax: Self-Attention with Polynomial Activations", arXiv 2410.18613).
// Features of a chunk of tokens live in the second level of cache and are made again in the backward pass; chunks have
// a fixed size and are summed in their order. P does not exist, so that attention dropout cannot apply.
#pragma once

#include "lib/attention/polynomial.h"

namespace lra {

class PolynomialLinearKernel final : public AttentionKernel {
 public:
  static constexpr int kLargestPower = 2;

  PolynomialLinearKernel(AttentionShape shape, AttentionSpec spec);

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  // M of each head without its gain, whatever N is.
  int64_t saved_floats(int64_t tokens, float dropout) const override;
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  // 4 N F D a head forward, 8 N F D backward.
  double flops(int64_t tokens, bool training, float dropout) const override;
  std::string form(bool training, float dropout) const override { return "linear"; }
  bool dropout_applies() const override { return false; }
  // Those of the quadratic form.
  bool has_weights() const override { return true; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override;

  int64_t features() const { return features_; }  // F

 private:
  PolynomialOptions options_;
  std::vector<KernelParameter> parameters_;
  int64_t features_;
};

}  // namespace lra
