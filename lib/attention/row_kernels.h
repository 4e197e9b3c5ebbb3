// Vector loops over the rows of a block that the attention drivers need.
#pragma once

#include "lib/ops/matmul.h"
#include "lib/tensor/view.h"

namespace lra {

// Row i of y = factor * factors[i * step] * row i of x (factors null: factor * row i); columns of y beyond those of x
// become 0. y may be x.
void scale_rows(float factor, const float* factors, int64_t step, ConstMatrix x, Matrix y);
// y = x or y += x, without gaps.
void add_rows(ConstMatrix x, Matrix y, Write write);
// dots[i] = row i of x · row i of y.
void dot_rows(ConstMatrix x, ConstMatrix y, float* dots);

}  // namespace lra
