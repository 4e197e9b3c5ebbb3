// Kernels of the driver of feature maps (feature_map.cpp). W is D + 1 rounded up; columns beyond are 0.
#pragma once

#include "lib/device/feature_map.h"

namespace lra::device {

// values (tokens, H*W) = [v, 1] of each head.
void values_with_ones(Context c, int64_t heads, ConstMatrix v, Matrix values);
// out (tokens, H*D) = the first D of y (tokens, H*W); divided: by D(z), z = number D of y.
void take_values(Context c, int64_t heads, ConstMatrix y, Matrix out);
struct Divisor {
  Denominator denominator;
  const int32_t* sequence;        // (tokens) of the group
  const int64_t* sequence_first;  // of the batch
  int64_t first;                  // row of the batch of token 0
  bool causal;
};
void divide_values(Context c, int64_t heads, const Divisor& divisor, ConstMatrix y, Matrix out);
// e (tokens, H*W) = [dO / D, δ], δ = -D'(z) (dO·O) / D: the gradient of y.
void divide_values_backward(Context c, int64_t heads, const Divisor& divisor, ConstMatrix y, ConstMatrix d_out,
                            Matrix e);
// Of `count` matrices (size, size) one after another, what stands right of the diagonal becomes 0.
void clear_later_keys(Context c, int64_t count, int64_t size, float* x);

}  // namespace lra::device
