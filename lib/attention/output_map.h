// What some variants do to the outputs of all heads, y = P V, before the output projection: a kernel around a kernel.
#pragma once

#include <memory>

#include "lib/attention/attention.h"

namespace lra {

class OutputMap {
 public:
  virtual ~OutputMap() = default;
  virtual std::vector<KernelParameter> parameters() const { return {}; }
  // y (N, H*D) -> out (N, H*D). in.parameters are those of the map.
  virtual void forward(const AttentionInput& in, ConstMatrix y, Matrix out) const = 0;
  // dy (N, H*D) is overwritten; dv (N, H*D), without gaps, and d_parameters are added to.
  virtual void backward(const AttentionInput& in, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix dv,
                        std::span<float* const> d_parameters) const = 0;
};

// map after kernel; its parameters stand behind those of the kernel.
std::unique_ptr<AttentionKernel> map_output(std::unique_ptr<AttentionKernel> kernel, std::unique_ptr<OutputMap> map);

}  // namespace lra
