// Vector loops over the rows of a block that the attention drivers need.
#pragma once

#include "lib/tensor/view.h"

namespace lra {

// Row i of y = factor * factors[i * step] * row i of x (factors null: factor * row i); columns of y beyond those of x
// become 0. y may be x.
void scale_rows(float factor, const float* factors, int64_t step, ConstMatrix x, Matrix y);
// dots[i] = row i of x · row i of y.
void dot_rows(ConstMatrix x, ConstMatrix y, float* dots);

}  // namespace lra
