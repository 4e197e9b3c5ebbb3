// From the states of a sequence to one vector: its sum over a divisor (the mean poolings) or its first row (cls).
#pragma once

#include "lib/tensor/view.h"

namespace lra {

// mean-padded: divisor = padded length; mean: divisor = max(N, 1). x (N, E), y (E). No rows: zeros.
void sum_pool_forward(ConstMatrix x, float divisor, float* y);
void sum_pool_backward(const float* dy, float divisor, Matrix dx);
// y = x_0 (zeros when there is no row); dx is dy in row 0 and 0 elsewhere.
void first_pool_forward(ConstMatrix x, float* y);
void first_pool_backward(const float* dy, Matrix dx);

namespace ref {
template <class T>
void sum_pool_forward(MatrixView<const T> x, T divisor, T* y);
template <class T>
void sum_pool_backward(const T* dy, T divisor, MatrixView<T> dx);
}  // namespace ref

}  // namespace lra
