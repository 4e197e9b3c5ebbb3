// Activations by the standard library's functions.
#include <cmath>
#include <numbers>

#include "lib/ops/activations.h"

namespace lra::ref {
namespace {

template <class T>
T tanh_argument(T x) {
  return std::sqrt(T(2) / std::numbers::pi_v<T>) * (x + T(0.044715) * x * x * x);
}

template <class T>
T gelu(Gelu form, T x) {
  if (form == Gelu::kTanh) return T(0.5) * x * (1 + std::tanh(tanh_argument(x)));
  return T(0.5) * x * std::erfc(-x / std::numbers::sqrt2_v<T>);
}

template <class T>
T gelu_slope(Gelu form, T x) {
  if (form == Gelu::kTanh) {
    const T tanh = std::tanh(tanh_argument(x));
    const T slope = std::sqrt(T(2) / std::numbers::pi_v<T>) * (1 + 3 * T(0.044715) * x * x);
    return T(0.5) * (1 + tanh) + T(0.5) * x * (1 - tanh * tanh) * slope;
  }
  const T density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<T>);
  return T(0.5) * std::erfc(-x / std::numbers::sqrt2_v<T>) + x * density;
}

}  // namespace

template <class T>
void gelu_forward(Gelu form, MatrixView<const T> x, MatrixView<T> y) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) y.row(i)[j] = gelu(form, x.row(i)[j]);
  }
}

template <class T>
void gelu_backward(Gelu form, MatrixView<const T> x, MatrixView<const T> dy, MatrixView<T> dx) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) dx.row(i)[j] = gelu_slope(form, x.row(i)[j]) * dy.row(i)[j];
  }
}

template <class T>
void relu_forward(MatrixView<const T> x, MatrixView<T> y) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) y.row(i)[j] = x.row(i)[j] <= 0 ? T(0) : x.row(i)[j];
  }
}

template <class T>
void relu_backward(MatrixView<const T> x, MatrixView<const T> dy, MatrixView<T> dx) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) dx.row(i)[j] = x.row(i)[j] <= 0 ? T(0) : dy.row(i)[j];
  }
}

template void gelu_forward(Gelu, MatrixView<const float>, MatrixView<float>);
template void gelu_forward(Gelu, MatrixView<const double>, MatrixView<double>);
template void gelu_backward(Gelu, MatrixView<const float>, MatrixView<const float>, MatrixView<float>);
template void gelu_backward(Gelu, MatrixView<const double>, MatrixView<const double>, MatrixView<double>);
template void relu_forward(MatrixView<const float>, MatrixView<float>);
template void relu_forward(MatrixView<const double>, MatrixView<double>);
template void relu_backward(MatrixView<const float>, MatrixView<const float>, MatrixView<float>);
template void relu_backward(MatrixView<const double>, MatrixView<const double>, MatrixView<double>);

}  // namespace lra::ref
