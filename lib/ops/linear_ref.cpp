// Linear layers in plain loops.
#include "lib/ops/linear.h"

namespace lra::ref {

template <class T>
void linear_forward(MatrixView<const T> x, MatrixView<const T> weight, const T* bias, MatrixView<T> y) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t o = 0; o < weight.rows; ++o) {
      T sum = bias == nullptr ? T(0) : bias[o];
      for (int64_t e = 0; e < weight.cols; ++e) sum += x.row(i)[e] * weight.row(o)[e];
      y.row(i)[o] = sum;
    }
  }
}

template <class T>
void linear_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> dy, MatrixView<T> dx,
                     MatrixView<T> d_weight, T* d_bias) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t e = 0; e < weight.cols; ++e) {
      T sum = 0;
      for (int64_t o = 0; o < weight.rows; ++o) {
        sum += dy.row(i)[o] * weight.row(o)[e];
        d_weight.row(o)[e] += dy.row(i)[o] * x.row(i)[e];
      }
      if (!dx.empty()) dx.row(i)[e] = sum;
    }
    if (d_bias != nullptr) {
      for (int64_t o = 0; o < weight.rows; ++o) d_bias[o] += dy.row(i)[o];
    }
  }
}

template void linear_forward(MatrixView<const float>, MatrixView<const float>, const float*, MatrixView<float>);
template void linear_forward(MatrixView<const double>, MatrixView<const double>, const double*, MatrixView<double>);
template void linear_backward(MatrixView<const float>, MatrixView<const float>, MatrixView<const float>,
                              MatrixView<float>, MatrixView<float>, float*);
template void linear_backward(MatrixView<const double>, MatrixView<const double>, MatrixView<const double>,
                              MatrixView<double>, MatrixView<double>, double*);

}  // namespace lra::ref
