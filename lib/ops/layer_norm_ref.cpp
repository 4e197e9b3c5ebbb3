// Layer normalisation in plain loops.
#include <cmath>

#include "lib/ops/layer_norm.h"

namespace lra::ref {

template <class T>
void layer_norm_forward(MatrixView<const T> x, const T* weight, const T* bias, T epsilon, MatrixView<T> y, T* mean,
                        T* rstd) {
  for (int64_t i = 0; i < x.rows; ++i) {
    T sum = 0, squares = 0;
    for (int64_t j = 0; j < x.cols; ++j) sum += x.row(i)[j];
    mean[i] = sum / static_cast<T>(x.cols);
    for (int64_t j = 0; j < x.cols; ++j) squares += (x.row(i)[j] - mean[i]) * (x.row(i)[j] - mean[i]);
    rstd[i] = 1 / std::sqrt(squares / static_cast<T>(x.cols) + epsilon);
    for (int64_t j = 0; j < x.cols; ++j) y.row(i)[j] = (x.row(i)[j] - mean[i]) * rstd[i] * weight[j] + bias[j];
  }
}

template <class T>
void layer_norm_backward(MatrixView<const T> x, const T* weight, const T* mean, const T* rstd, MatrixView<const T> dy,
                         MatrixView<T> dx, T* d_weight, T* d_bias) {
  for (int64_t i = 0; i < x.rows; ++i) {
    T sum = 0, sum_unit = 0;
    for (int64_t j = 0; j < x.cols; ++j) {
      const T unit = (x.row(i)[j] - mean[i]) * rstd[i];
      d_weight[j] += dy.row(i)[j] * unit;
      d_bias[j] += dy.row(i)[j];
      sum += weight[j] * dy.row(i)[j];
      sum_unit += weight[j] * dy.row(i)[j] * unit;
    }
    for (int64_t j = 0; j < x.cols; ++j) {
      const T unit = (x.row(i)[j] - mean[i]) * rstd[i];
      dx.row(i)[j] += rstd[i] * (weight[j] * dy.row(i)[j] - (sum + unit * sum_unit) / static_cast<T>(x.cols));
    }
  }
}

template void layer_norm_forward(MatrixView<const float>, const float*, const float*, float, MatrixView<float>, float*,
                                 float*);
template void layer_norm_forward(MatrixView<const double>, const double*, const double*, double, MatrixView<double>,
                                 double*, double*);
template void layer_norm_backward(MatrixView<const float>, const float*, const float*, const float*,
                                  MatrixView<const float>, MatrixView<float>, float*, float*);
template void layer_norm_backward(MatrixView<const double>, const double*, const double*, const double*,
                                  MatrixView<const double>, MatrixView<double>, double*, double*);

}  // namespace lra::ref
