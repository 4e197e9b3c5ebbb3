// Driver of score activations: blocks of queries against tiles of keys, so that scores live in the first two levels of
// cache whatever the length. They are computed again in the backward pass: memory is O(N D) a head, and a bit an
// entry for the dropout mask of sequences that are not too long. Sizes of blocks and tiles are functions of the
// sequence's length alone.
#pragma once

#include <memory>

#include "lib/attention/score_activation.h"

namespace lra {

class TiledKernel final : public AttentionKernel {
 public:
  TiledKernel(AttentionShape shape, AttentionSpec spec, std::vector<KernelParameter> parameters,
              std::unique_ptr<ScoreActivation> activation, bool causal = false);

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  int64_t saved_floats(int64_t tokens, float dropout) const override;
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  // Causal rows cost half.
  double flops(int64_t tokens, bool training, float dropout) const override;
  std::string form(bool training, float dropout) const override { return "quadratic"; }
  bool has_weights() const override { return true; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override;

  struct Sizes {
    int64_t queries, keys;  // of a block, of a tile
  };
  // For sequences of N tokens.
  Sizes sizes(int64_t tokens) const;

 private:
  // One head, by the products of tile_products.h.
  template <class Products>
  void head_forward(const AttentionInput& in, int index, Matrix out, float* saved, Arena& arena) const;
  template <class Products>
  void head_backward(const AttentionInput& in, int index, ConstMatrix out, const float* saved,
                     const AttentionGradients& gradients, const RowGradients& sums, Arena& arena) const;
  const float* prepare(const AttentionInput& in, int index, Arena& arena) const;

  std::vector<KernelParameter> parameters_;
  std::unique_ptr<ScoreActivation> activation_;
  bool causal_;
};

}  // namespace lra
