// GELU (Hendrycks & Gimpel 2016) in a kernel. Only sources that hold kernels (.cu) include this.
#pragma once

#include <cmath>

#include "lib/device/team.h"
#include "lib/ops/activations.h"

namespace lra::device {

constexpr float kRootHalf = 0.707106781186547524f;     // 1 / √2
constexpr float kRootDensity = 0.398942280401432678f;  // 1 / √(2π)
constexpr float kTanhFactor = 0.797884560802865356f;   // √(2/π)

LRA_KERNEL inline float gelu(Gelu form, float x) {
  if (form == Gelu::kTanh) return 0.5f * x * (1.0f + std::tanh(kTanhFactor * (x + 0.044715f * x * x * x)));
  return 0.5f * x * std::erfc(-x * kRootHalf);
}

LRA_KERNEL inline float gelu_slope(Gelu form, float x) {
  if (form == Gelu::kTanh) {
    const float tanh = std::tanh(kTanhFactor * (x + 0.044715f * x * x * x));
    const float slope = kTanhFactor * (1.0f + 3.0f * 0.044715f * x * x);
    return 0.5f * (1.0f + tanh) + 0.5f * x * (1.0f - tanh * tanh) * slope;
  }
  return 0.5f * std::erfc(-x * kRootHalf) + x * kRootDensity * std::exp(-0.5f * x * x);
}

}  // namespace lra::device
