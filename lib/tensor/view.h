// Row-major views of float matrices. They own nothing.
// Vocabulary of sizes everywhere: B batch, N tokens of a sequence, H heads, D head width, E model width.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lra {

template <class T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0, cols = 0;
  int64_t stride = 0;  // distance of rows in elements, >= cols

  MatrixView() = default;
  MatrixView(T* d, int64_t r, int64_t c) : data(d), rows(r), cols(c), stride(c) {}
  MatrixView(T* d, int64_t r, int64_t c, int64_t s) : data(d), rows(r), cols(c), stride(s) {}
  // A writable view converts to a read-only one.
  template <class U>
  requires(std::is_same_v<const U, T>) MatrixView(const MatrixView<U>& m)
      : data(m.data), rows(m.rows), cols(m.cols), stride(m.stride) {}

  T* row(int64_t i) const { return data + i * stride; }
  MatrixView row_block(int64_t first, int64_t count) const { return {row(first), count, cols, stride}; }
  MatrixView col_block(int64_t first, int64_t count) const { return {data + first, rows, count, stride}; }
  bool empty() const { return data == nullptr; }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

}  // namespace lra
