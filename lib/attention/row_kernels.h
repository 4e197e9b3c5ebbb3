// Vector loops over one row that the attention drivers need.
#pragma once

#include <cstdint>

#include "lib/ops/dropout.h"

namespace lra {

// x_j = 0 where bit j is 0 (bit j % 8 of byte j / 8).
void mask_row(const uint8_t* bits, int64_t n, float* x);
float dot_row(const float* x, const float* y, int64_t n);
// y_j = factor * x_j; may be in place.
void scale_row(float factor, const float* x, int64_t n, float* y);

}  // namespace lra
