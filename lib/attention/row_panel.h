// Row-panel driver: a block of queries against all keys at a time. Takes any ScoreActivation. The scores of a block
// are recomputed in the backward pass, so memory is O(N D) a head. The number of queries in a block is a function of N
// alone: measured from 16 to 256 on a Zen 4 core, 96 was the best or within 2 % of it at 348 to 4096 keys (products
// want tall panels more than they want panels that fit the L2 cache); beyond that the panel's size is held.
#pragma once

#include <memory>

#include "lib/attention/score_activation.h"

namespace lra {

class RowPanelKernel final : public AttentionKernel {
 public:
  RowPanelKernel(AttentionShape shape, AttentionSpec spec, std::vector<KernelParameter> parameters,
                 std::unique_ptr<ScoreActivation> activation);

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  int64_t saved_floats(int64_t tokens) const override;
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  double flops(int64_t tokens, bool training, float dropout) const override;
  std::string form(bool training, float dropout) const override { return "quadratic"; }

  // Queries in a block for sequences of N keys.
  static int64_t block_rows(int64_t keys);

 private:
  std::vector<KernelParameter> parameters_;
  std::unique_ptr<ScoreActivation> activation_;
};

}  // namespace lra
