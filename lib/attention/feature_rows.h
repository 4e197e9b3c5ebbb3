// Vector loops over rows of features: the exponentials, waves and maxima of the feature maps and of low-rank attention.
#pragma once

#include "lib/tensor/view.h"

namespace lra {

// Row i of y = factor * (e^(scale x - shifts[i * step]) + offset); shifts null: without. y may be x.
struct ExpRows {
  float scale = 1.0f;
  const float* shifts = nullptr;
  int64_t step = 1;  // 0: one shift for all rows
  float offset = 0.0f;
  float factor = 1.0f;
};
void exp_rows(const ExpRows& form, ConstMatrix x, Matrix y);
// sines = factor * sin(x), cosines = factor * cos(x).
void wave_rows(float factor, ConstMatrix x, Matrix sines, Matrix cosines);
// elu(x) + 1: x + 1 above 0, e^x below. y may be x.
void elu_rows(ConstMatrix x, Matrix y);
// maxima[i] = the largest of row i.
void max_rows(ConstMatrix x, float* maxima);
// Every row of x becomes its softmax.
void softmax_rows(Matrix x);
// dx = p (dp - p·dp) for each row of weights p; dx may be dp.
void softmax_rows_backward(ConstMatrix p, ConstMatrix dp, Matrix dx);

}  // namespace lra
