// AdamW as its paper's Algorithm 2 states it, with the decay scaled by the learning rate as in PyTorch.
#include <cmath>

#include "lib/ops/adamw.h"

namespace lra::ref {

template <class T>
void adamw_update(const AdamWSettings& settings, int64_t step, std::span<T> parameters, std::span<const T> gradients,
                  std::span<T> m, std::span<T> v) {
  const T rate = static_cast<T>(settings.learning_rate), beta1 = static_cast<T>(settings.beta1);
  const T beta2 = static_cast<T>(settings.beta2), epsilon = static_cast<T>(settings.epsilon);
  const T decay = static_cast<T>(settings.weight_decay);
  for (size_t i = 0; i < parameters.size(); ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * gradients[i];
    v[i] = beta2 * v[i] + (1 - beta2) * gradients[i] * gradients[i];
    const T m_hat = m[i] / (1 - std::pow(beta1, static_cast<T>(step)));
    const T v_hat = v[i] / (1 - std::pow(beta2, static_cast<T>(step)));
    parameters[i] -= rate * decay * parameters[i] + rate * m_hat / (std::sqrt(v_hat) + epsilon);
  }
}

template void adamw_update(const AdamWSettings&, int64_t, std::span<float>, std::span<const float>, std::span<float>,
                           std::span<float>);
template void adamw_update(const AdamWSettings&, int64_t, std::span<double>, std::span<const double>, std::span<double>,
                           std::span<double>);

}  // namespace lra::ref
