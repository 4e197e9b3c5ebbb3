// Attention on a whole ragged batch, forward and backward. Formulas and names: docs/attention.md; the seam on the CPU,
// a sequence at a time, is lib/attention/attention.h.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "lib/attention/attention.h"
#include "lib/device/ops.h"

namespace lra::device {

// As AttentionInput; matrices and parameters are the device's.
struct AttentionCall {
  const RaggedBatch& batch;
  ConstMatrix q, k, v;                       // (tokens, H*D) each
  ConstMatrix x;                             // (tokens, E), the layer input
  std::span<const float* const> parameters;  // one a KernelParameter
  bool training = false;
  float dropout = 0.0f;  // of weights
  std::array<uint32_t, 2> dropout_key{};
  int layer = 0;
};

// As AttentionGradients.
struct AttentionSlopes {
  ConstMatrix d_out;                     // (tokens, H*D)
  Matrix dq, dk, dv;                     // (tokens, H*D), overwritten
  Matrix dx;                             // (tokens, E), added to
  std::span<float* const> d_parameters;  // added to; null for tensors that are not trained
};

class Attention {
 public:
  virtual ~Attention() = default;
  // In time and memory linear in the number of tokens.
  virtual bool linear() const { return false; }
  // Floats that forward leaves for backward.
  virtual int64_t saved_floats(int64_t tokens) const = 0;
  // out (tokens, H*D) is overwritten; saved may be null when no backward follows.
  virtual void forward(Context c, const AttentionCall& call, Matrix out, float* saved) const = 0;
  virtual void backward(Context c, const AttentionCall& call, const float* saved,
                        const AttentionSlopes& slopes) const = 0;
};

// UsageError when the spec has no kernel here. mode: with kBfloat16 families that have a fused kernel (fused.h) run in
// it.
std::unique_ptr<Attention> make_attention(const AttentionSpec& spec, const AttentionShape& shape,
                                          ProductMode mode = ProductMode::kFloat32);

}  // namespace lra::device
