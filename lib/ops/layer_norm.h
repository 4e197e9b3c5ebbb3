// Layer normalisation over the last dimension (Ba et al. 2016): y = (x - mean) * rstd * weight + bias,
// rstd = 1 / sqrt(population variance + epsilon).
#pragma once

#include "lib/tensor/view.h"

namespace lra {

// x, y (N, E); weight, bias (E); mean, rstd (N) are saved for the backward pass.
void layer_norm_forward(ConstMatrix x, const float* weight, const float* bias, float epsilon, Matrix y, float* mean,
                        float* rstd);
// dx is ADDED to (it stands on the residual path); d_weight, d_bias are added to.
void layer_norm_backward(ConstMatrix x, const float* weight, const float* mean, const float* rstd, ConstMatrix dy,
                         Matrix dx, float* d_weight, float* d_bias);

namespace ref {
template <class T>
void layer_norm_forward(MatrixView<const T> x, const T* weight, const T* bias, T epsilon, MatrixView<T> y, T* mean,
                        T* rstd);
template <class T>
void layer_norm_backward(MatrixView<const T> x, const T* weight, const T* mean, const T* rstd, MatrixView<const T> dy,
                         MatrixView<T> dx, T* d_weight, T* d_bias);
}  // namespace ref

}  // namespace lra
