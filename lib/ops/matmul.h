// Matrix product on one thread (parallelism is over sequences, above the ops).
#pragma once

#include "lib/tensor/view.h"

namespace lra {

enum class Transpose { kNo, kYes };
enum class Write { kOver, kAdd };  // overwrite the result or add to it

// C (M, N) = alpha op(A) op(B), or C += alpha op(A) op(B), with op(A) (M, K) and op(B) (K, N).
void matmul(ConstMatrix a, Transpose ta, ConstMatrix b, Transpose tb, Matrix c, Write write, float alpha = 1.0f);

namespace ref {
template <class T>
void matmul(MatrixView<const T> a, Transpose ta, MatrixView<const T> b, Transpose tb, MatrixView<T> c, Write write,
            T alpha = 1);
}  // namespace ref

}  // namespace lra
