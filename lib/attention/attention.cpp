#include "lib/attention/attention.h"

#include <algorithm>

namespace lra {

int64_t KernelParameter::size() const {
  int64_t size = 1;
  for (const int64_t n : shape) size *= n;
  return size;
}

std::function<void(Random&, std::span<float>)> start_constant(double value) {
  return [value](Random&, std::span<float> x) { std::ranges::fill(x, static_cast<float>(value)); };
}

std::function<void(Random&, std::span<float>)> start_normal(double deviation) {
  return [deviation](Random& random, std::span<float> x) {
    for (float& value : x) value = static_cast<float>(deviation * random.normal());
  };
}

std::function<void(Random&, std::span<float>)> start_uniform(double bound) {
  return [bound](Random& random, std::span<float> x) {
    for (float& value : x) value = static_cast<float>(bound * (2.0 * random.uniform() - 1.0));
  };
}

double AttentionKernel::dense_flops(int64_t tokens, bool training) const {
  const double n = static_cast<double>(tokens);
  return (training ? 14.0 : 4.0) * n * n * shape_.head_dim * shape_.heads;
}

}  // namespace lra
