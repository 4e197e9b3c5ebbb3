// Matrix product in plain loops.
#include "lib/ops/matmul.h"

namespace lra::ref {

template <class T>
void matmul(MatrixView<const T> a, Transpose ta, MatrixView<const T> b, Transpose tb, MatrixView<T> c, Write write,
            T alpha) {
  const int64_t inner = ta == Transpose::kNo ? a.cols : a.rows;
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.cols; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += (ta == Transpose::kNo ? a.row(i)[k] : a.row(k)[i]) * (tb == Transpose::kNo ? b.row(k)[j] : b.row(j)[k]);
      }
      c.row(i)[j] = alpha * sum + (write == Write::kAdd ? c.row(i)[j] : T(0));
    }
  }
}

template void matmul(MatrixView<const float>, Transpose, MatrixView<const float>, Transpose, MatrixView<float>, Write,
                     float);
template void matmul(MatrixView<const double>, Transpose, MatrixView<const double>, Transpose, MatrixView<double>,
                     Write, double);

}  // namespace lra::ref
