// y = x Wᵀ + b, weights (out, in) as torch.nn.Linear keeps them.
// Rule of all ops: gradients of parameters are added to, gradients of activations are overwritten unless said
// otherwise.
#pragma once

#include "lib/ops/matmul.h"
#include "lib/tensor/arena.h"

namespace lra {

// x (N, in), weight (out, in), bias (out) or null, y (N, out).
void linear_forward(ConstMatrix x, ConstMatrix weight, const float* bias, Matrix y);
// dx is written as dx_write says (skipped when empty); d_weight and d_bias (null: none) are added to.
void linear_backward(ConstMatrix x, ConstMatrix weight, ConstMatrix dy, Matrix dx, Matrix d_weight, float* d_bias,
                     Write dx_write = Write::kOver);
// d_bias += the sum of dy's rows.
void add_bias_gradient(ConstMatrix dy, float* d_bias);

// The same with operands rounded to bfloat16 (lib/ops/bfloat16.h); scratch comes from the arena.
void linear_forward_bfloat16(ConstMatrix x, ConstMatrix weight, const float* bias, Matrix y, Arena& arena);
void linear_backward_bfloat16(ConstMatrix x, ConstMatrix weight, ConstMatrix dy, Matrix dx, Write dx_write,
                              Matrix d_weight, float* d_bias, Arena& arena);

namespace ref {
template <class T>
void linear_forward(MatrixView<const T> x, MatrixView<const T> weight, const T* bias, MatrixView<T> y);
template <class T>
void linear_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> dy, MatrixView<T> dx,
                     MatrixView<T> d_weight, T* d_bias);
}  // namespace ref

}  // namespace lra
