// Softmax of numbers z(j), j < n, by a team: what its families share. Only sources that hold kernels include this.
#pragma once

#include <cmath>

#include "lib/device/team.h"

namespace lra::device {

struct SoftmaxRow {
  float max, sum;  // Σ exp(z - max)

  template <class Z>
  LRA_KERNEL static SoftmaxRow of(const Team& team, int64_t n, Z z) {
    SoftmaxRow row;
    row.max = team.max(n, z);
    const float max = row.max;
    row.sum = team.sum(n, [=](int64_t j) { return std::exp(z(j) - max); });
    return row;
  }
  LRA_KERNEL float weight(float z) const { return std::exp(z - max) / sum; }
};

}  // namespace lra::device
