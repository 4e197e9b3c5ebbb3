// Token plus position embedding of one ragged sequence: x_i = token[ids_i] + position[places_i].
// Places are those in the padded sequence: padding inside a sequence (black pixels) leaves gaps.
#pragma once

#include <cstdint>
#include <span>

#include "lib/tensor/view.h"

namespace lra {

// ids, places (N); token (vocabulary, E); position (places, E); x (N, E).
void embedding_forward(std::span<const int32_t> ids, std::span<const int32_t> places, ConstMatrix token,
                       ConstMatrix position, Matrix x);
// d_token and d_position (empty: not trained) are added to, in the order of the rows.
void embedding_backward(std::span<const int32_t> ids, std::span<const int32_t> places, ConstMatrix dx, Matrix d_token,
                        Matrix d_position);

namespace ref {
template <class T>
void embedding_forward(std::span<const int32_t> ids, std::span<const int32_t> places, MatrixView<const T> token,
                       MatrixView<const T> position, MatrixView<T> x);
template <class T>
void embedding_backward(std::span<const int32_t> ids, std::span<const int32_t> places, MatrixView<const T> dx,
                        MatrixView<T> d_token, MatrixView<T> d_position);
}  // namespace ref

}  // namespace lra
