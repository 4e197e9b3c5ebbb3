// Poolings in plain loops.
#include "lib/ops/pooling.h"

namespace lra::ref {

template <class T>
void sum_pool_forward(MatrixView<const T> x, T divisor, T* y) {
  for (int64_t j = 0; j < x.cols; ++j) {
    T sum = 0;
    for (int64_t i = 0; i < x.rows; ++i) sum += x.row(i)[j];
    y[j] = sum / divisor;
  }
}

template <class T>
void sum_pool_backward(const T* dy, T divisor, MatrixView<T> dx) {
  for (int64_t i = 0; i < dx.rows; ++i) {
    for (int64_t j = 0; j < dx.cols; ++j) dx.row(i)[j] = dy[j] / divisor;
  }
}

template void sum_pool_forward(MatrixView<const float>, float, float*);
template void sum_pool_forward(MatrixView<const double>, double, double*);
template void sum_pool_backward(const float*, float, MatrixView<float>);
template void sum_pool_backward(const double*, double, MatrixView<double>);

}  // namespace lra::ref
