// y = x Wᵀ + b, weights (out, in) as torch.nn.Linear keeps them.
// Rule of all ops: gradients of parameters are added to, gradients of activations are overwritten unless said
// otherwise.
#pragma once

#include "lib/ops/matmul.h"

namespace lra {

// x (N, in), weight (out, in), bias (out) or null, y (N, out).
void linear_forward(ConstMatrix x, ConstMatrix weight, const float* bias, Matrix y);
// dx is overwritten (skipped when empty); d_weight and d_bias (null: none) are added to.
void linear_backward(ConstMatrix x, ConstMatrix weight, ConstMatrix dy, Matrix dx, Matrix d_weight, float* d_bias);

namespace ref {
template <class T>
void linear_forward(MatrixView<const T> x, MatrixView<const T> weight, const T* bias, MatrixView<T> y);
template <class T>
void linear_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> dy, MatrixView<T> dx,
                     MatrixView<T> d_weight, T* d_bias);
}  // namespace ref

}  // namespace lra
