// Embeddings in plain loops.
#include "lib/ops/embedding.h"

namespace lra::ref {

template <class T>
void embedding_forward(std::span<const int32_t> ids, std::span<const int32_t> places, MatrixView<const T> token,
                       MatrixView<const T> position, MatrixView<T> x) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) x.row(i)[j] = token.row(ids[i])[j] + position.row(places[i])[j];
  }
}

template <class T>
void embedding_backward(std::span<const int32_t> ids, std::span<const int32_t> places, MatrixView<const T> dx,
                        MatrixView<T> d_token, MatrixView<T> d_position) {
  for (int64_t i = 0; i < dx.rows; ++i) {
    for (int64_t j = 0; j < dx.cols; ++j) {
      if (!d_token.empty()) d_token.row(ids[i])[j] += dx.row(i)[j];
      if (!d_position.empty()) d_position.row(places[i])[j] += dx.row(i)[j];
    }
  }
}

using Indices = std::span<const int32_t>;
template void embedding_forward(Indices, Indices, MatrixView<const float>, MatrixView<const float>, MatrixView<float>);
template void embedding_forward(Indices, Indices, MatrixView<const double>, MatrixView<const double>,
                                MatrixView<double>);
template void embedding_backward(Indices, Indices, MatrixView<const float>, MatrixView<float>, MatrixView<float>);
template void embedding_backward(Indices, Indices, MatrixView<const double>, MatrixView<double>, MatrixView<double>);

}  // namespace lra::ref
