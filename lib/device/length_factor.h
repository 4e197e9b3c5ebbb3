// A LengthFactor in a kernel. Only sources that hold kernels (.cu) include this.
#pragma once

#include <cmath>

#include "lib/device/families.h"
#include "lib/device/team.h"

namespace lra::device {

// Of a row with that many keys.
LRA_KERNEL inline float length_factor(const LengthFactor& f, int64_t keys) {
  const float n = f.length > 0.0f ? f.length : static_cast<float>(keys);
  if (f.exponent == 0.0f) return f.factor;
  if (f.exponent == 0.5f) return f.factor / std::sqrt(n);
  if (f.exponent == 1.0f) return f.factor / n;
  return f.factor * std::pow(n, -f.exponent);
}

}  // namespace lra::device
