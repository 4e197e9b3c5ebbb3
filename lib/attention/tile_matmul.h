// Small products for tiles of the attention matrix, on one thread. Every product multiplies single numbers of A with
// vectors of B, so that results stay in registers and neither operand is packed on each call, as a general sgemm has
// to: at head widths of 16 to 64 that packing and the pass over its result cost more than a tenth of the time.
// Widths are rounded up to whole vectors: padded_width(D) columns, the ones beyond D being 0.
// An element of a result is one chain of multiply-adds in the order of the inner index: its bits do not depend on
// which rows and columns are computed with it.
#pragma once

#include <cstdint>

#include "lib/ops/matmul.h"
#include "lib/tensor/view.h"

namespace lra {

// Rows of A that the kernels like best to take at once.
constexpr int64_t kTileRows = 12;
// The most rows that a tile of scores has, with whatever products.
constexpr int64_t kMostTileRows = 16;

// D rounded up to whole vectors.
int64_t padded_width(int64_t d);
// Number of columns rounded up to whole panels of pack_transposed.
int64_t padded_columns(int64_t columns);

// X (N, D) transposed, in panels of some columns each, zeros beyond N: padded_columns(N) * D floats.
void pack_transposed(ConstMatrix x, float* panels);

// C (M, padded_columns(columns)) = A (M, D) X^T for columns first … first + columns - 1 of X^T, packed as above; first
// is a multiple of padded_columns(1).
void tile_scores(ConstMatrix a, const float* panels, int64_t first, int64_t columns, Matrix c);

// C (M, W) = or += op(A) B with B (K, W), W a multiple of whole vectors; op(A) (M, K) is A or its transpose.
void tile_matmul(ConstMatrix a, Transpose ta, ConstMatrix b, Matrix c, Write write);

}  // namespace lra
