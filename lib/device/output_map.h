// What some variants do to the outputs of all heads before the output projection (lib/attention/output_map.h): an
// attention around an attention.
#pragma once

#include <memory>

#include "lib/device/attention.h"

namespace lra::device {

class OutputMap {
 public:
  virtual ~OutputMap() = default;
  virtual int parameters() const = 0;  // how many tensors
  // y (tokens, H*D) -> out; call.parameters are those of the map.
  virtual void forward(Context c, const AttentionCall& call, ConstMatrix y, Matrix out) const = 0;
  // dy (tokens, H*D) is overwritten; dv (tokens, H*D) and d_parameters are added to.
  virtual void backward(Context c, const AttentionCall& call, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix dv,
                        std::span<float* const> d_parameters) const = 0;
};

// map after attention; its parameters stand behind those of the attention.
std::unique_ptr<Attention> map_output(std::unique_ptr<Attention> attention, std::unique_ptr<OutputMap> map,
                                      const AttentionShape& shape);

// The modifier +xsa (lib/attention/exclude_self.h).
std::unique_ptr<OutputMap> exclude_self(const AttentionShape& shape);
// rela's gain ⊙ o / rms(o) [⊙ σ(gate ⊙ o)] (lib/attention/relu_n.cpp).
std::unique_ptr<OutputMap> rms_gate(bool gate);
// nap's LayerNorm and GELU (lib/attention/nap.cpp).
std::unique_ptr<OutputMap> norm_gelu();

}  // namespace lra::device
