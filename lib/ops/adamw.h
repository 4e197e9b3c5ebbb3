// AdamW (Loshchilov & Hutter 2019) as torch.optim.AdamW does it, on a flat parameter vector.
#pragma once

#include <cstdint>
#include <span>

namespace lra {

struct AdamWSettings {
  double learning_rate, beta1, beta2, epsilon, weight_decay;
};

// Update number step (from 1) in place. m and v are the moments; with a beta1 that changes from step to step the bias
// correction uses the current one to the power of step, as PyTorch does.
void adamw_update(const AdamWSettings& settings, int64_t step, std::span<float> parameters,
                  std::span<const float> gradients, std::span<float> m, std::span<float> v);

// Global L2 norm, summed in double in a fixed order.
double l2_norm(std::span<const float> x);

namespace ref {
template <class T>
void adamw_update(const AdamWSettings& settings, int64_t step, std::span<T> parameters, std::span<const T> gradients,
                  std::span<T> m, std::span<T> v);
}  // namespace ref

}  // namespace lra
