// Linear layers in bfloat16: chunks of rows that stay in the first levels of cache are rounded and multiplied at once.
#include <algorithm>

#include "lib/ops/bfloat16.h"
#include "lib/ops/linear.h"
#include "lib/util/check.h"

namespace lra {
namespace {

constexpr int64_t kChunk = 192;  // rows

// y = or += x, of which y's columns count.
void put(ConstMatrix x, Matrix y, Write write) {
  for (int64_t i = 0; i < y.rows; ++i) {
    const float* from = x.row(i);
    float* to = y.row(i);
    if (write == Write::kOver) {
      std::copy_n(from, y.cols, to);
    } else {
      for (int64_t j = 0; j < y.cols; ++j) to[j] += from[j];
    }
  }
}

template <class Body>
void for_each_chunk(int64_t rows, const Body& body) {
  for (int64_t first = 0; first < rows; first += kChunk) body(first, std::min(kChunk, rows - first));
}

}  // namespace

void linear_forward_bfloat16(ConstMatrix x, ConstMatrix weight, const float* bias, Matrix y, Arena& arena) {
  check(x.cols == weight.cols && y.rows == x.rows && y.cols == weight.rows, "linear ({}, {}) by ({}, {}) into ({}, {})",
        x.rows, x.cols, weight.rows, weight.cols, y.rows, y.cols);
  const Arena::Scope scope(arena);
  const PairMatrix panels = bfloat16_matrix(bfloat16_pairs(weight.cols), bfloat16_columns(weight.rows), arena);
  bfloat16_pack_transposed(weight, panels.data);
  const PairMatrix left = bfloat16_matrix(kChunk, bfloat16_pairs(x.cols), arena);
  const Matrix chunk = arena.matrix(kChunk, bfloat16_columns(y.cols));
  for_each_chunk(x.rows, [&](int64_t first, int64_t count) {
    bfloat16_pack_rows(x.row_block(first, count), left.row_block(0, count));
    bfloat16_matmul_panels(left.row_block(0, count), panels.data, 0, y.cols, chunk.row_block(0, count));
    for (int64_t i = 0; i < count; ++i) {
      const float* from = chunk.row(i);
      float* to = y.row(first + i);
      if (bias == nullptr) {
        std::copy_n(from, y.cols, to);
      } else {
        for (int64_t j = 0; j < y.cols; ++j) to[j] = from[j] + bias[j];
      }
    }
  });
}

void linear_backward_bfloat16(ConstMatrix x, ConstMatrix weight, ConstMatrix dy, Matrix dx, Write dx_write,
                              Matrix d_weight, float* d_bias, Arena& arena) {
  check(dy.rows == x.rows && dy.cols == weight.rows && x.cols == weight.cols,
        "linear ({}, {}) by ({}, {}) from ({}, {})", x.rows, x.cols, weight.rows, weight.cols, dy.rows, dy.cols);
  const Arena::Scope scope(arena);
  const PairMatrix weight_rows = bfloat16_matrix(bfloat16_pairs(weight.rows), bfloat16_width(weight.cols), arena);
  bfloat16_pack_row_pairs(weight, weight_rows);
  const PairMatrix left = bfloat16_matrix(kChunk, bfloat16_pairs(dy.cols), arena);
  const PairMatrix dy_pairs = bfloat16_matrix(bfloat16_pairs(kChunk), dy.cols, arena);
  const PairMatrix x_pairs = bfloat16_matrix(bfloat16_pairs(kChunk), bfloat16_width(x.cols), arena);
  const Matrix dx_chunk = arena.matrix(kChunk, bfloat16_width(x.cols)),
               sum = arena.matrix(d_weight.rows, bfloat16_width(x.cols));
  for_each_chunk(x.rows, [&](int64_t first, int64_t count) {
    const ConstMatrix dy_block = dy.row_block(first, count);
    if (!dx.empty()) {
      bfloat16_pack_rows(dy_block, left.row_block(0, count));
      bfloat16_matmul(left.row_block(0, count), Transpose::kNo, weight_rows, dx_chunk.row_block(0, count),
                      Write::kOver);
      put(dx_chunk, dx.row_block(first, count), dx_write);
    }
    const int64_t rows = bfloat16_pairs(count);
    bfloat16_pack_row_pairs(dy_block, dy_pairs.row_block(0, rows));
    bfloat16_pack_row_pairs(x.row_block(first, count), x_pairs.row_block(0, rows));
    bfloat16_matmul(dy_pairs.row_block(0, rows), Transpose::kYes, x_pairs.row_block(0, rows), sum,
                    first == 0 ? Write::kOver : Write::kAdd);
  });
  if (x.rows > 0) put(sum, d_weight, Write::kAdd);
  if (d_bias != nullptr) add_bias_gradient(dy, d_bias);
}

}  // namespace lra
