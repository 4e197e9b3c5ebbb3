// Elementwise activations of the network: GELU (Hendrycks & Gimpel 2016), exact or by tanh, and ReLU.
#pragma once

#include "lib/tensor/view.h"

namespace lra {

enum class Gelu { kExact, kTanh };

// y = gelu(x); x and y may be the same. Absolute error below 5e-7 * max(1, |x|).
void gelu_forward(Gelu form, ConstMatrix x, Matrix y);
// dx = gelu'(x) dy; dx and dy may be the same.
void gelu_backward(Gelu form, ConstMatrix x, ConstMatrix dy, Matrix dx);

// y = max(x, 0); NaN stays NaN. May be in place. The derivative at 0 is 0; y may stand for x in the backward pass.
void relu_forward(ConstMatrix x, Matrix y);
void relu_backward(ConstMatrix x, ConstMatrix dy, Matrix dx);

namespace ref {
template <class T>
void gelu_forward(Gelu form, MatrixView<const T> x, MatrixView<T> y);
template <class T>
void gelu_backward(Gelu form, MatrixView<const T> x, MatrixView<const T> dy, MatrixView<T> dx);
template <class T>
void relu_forward(MatrixView<const T> x, MatrixView<T> y);
template <class T>
void relu_backward(MatrixView<const T> x, MatrixView<const T> dy, MatrixView<T> dx);
}  // namespace ref

}  // namespace lra
