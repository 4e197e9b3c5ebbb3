// bfloat16 products with float32 accumulation (VDPBF16PS of AVX-512 BF16, and where there is AMX its TDPBF16PS, whose
// sums are rounded in another order), on one thread. Numbers are rounded to
// nearest even when they are packed; an instruction multiplies pairs and adds both products to a float32, so that every
// operand is kept as pairs along the inner index of the product:
// - rows of pairs of X (M, K): row i holds (x[i][0], x[i][1]), (x[i][2], x[i][3]), …, an odd end is filled with 0;
// - pairs of rows of X (K, N): row p holds, for each column, (x[2p][c], x[2p+1][c]), an odd end is filled with 0.
// A result's bits do not depend on the rows and columns that are computed with it.
#pragma once

#include <cstdint>

#include "lib/ops/matmul.h"
#include "lib/tensor/arena.h"
#include "lib/tensor/view.h"

namespace lra {

// Two numbers: the first in the low half.
using Bfloat16Pair = uint32_t;
using PairMatrix = MatrixView<Bfloat16Pair>;
using ConstPairMatrix = MatrixView<const Bfloat16Pair>;

// Whether this processor has the instructions; the functions below may only be called if so.
bool bfloat16_supported();
// InputError where it has not.
void require_bfloat16(bool supported = bfloat16_supported());
// Whether AMX is used where it is; for tests of what processors without it do.
void use_bfloat16_tiles(bool wanted);

// Columns of a result are computed in whole panels: N rounded up.
int64_t bfloat16_columns(int64_t n);
// Rows of A that the products like best to take at once: 12 or 16.
int64_t bfloat16_tile_rows();
// Columns of pairs of rows come in whole vectors: N rounded up.
inline int64_t bfloat16_width(int64_t n) { return (n + 15) / 16 * 16; }
inline int64_t bfloat16_pairs(int64_t k) { return (k + 1) / 2; }
inline PairMatrix bfloat16_matrix(int64_t rows, int64_t cols, Arena& arena) {
  static_assert(sizeof(Bfloat16Pair) == sizeof(float));
  return {reinterpret_cast<Bfloat16Pair*>(arena.floats(rows * cols)), rows, cols};
}

// X (M, K) -> rows of pairs (M, pairs(K)).
void bfloat16_pack_rows(ConstMatrix x, PairMatrix packed);
// X (K, N) -> pairs of rows (pairs(K), N), columns from N up to packed.cols filled with 0.
void bfloat16_pack_row_pairs(ConstMatrix x, PairMatrix packed);
// X (N, K) -> Xᵀ as pairs of rows, in panels of bfloat16_columns(1) columns, one whole panel after another: columns(N)
// * pairs(K) pairs.
void bfloat16_pack_transposed(ConstMatrix x, Bfloat16Pair* panels);

// C (M, columns) = A Xᵀ for the columns first … of Xᵀ (first: whole panels): A rows of pairs (M, pairs(K)), panels as
// packed above. Columns of C up to bfloat16_columns(columns) are written.
void bfloat16_matmul_panels(ConstPairMatrix a, const Bfloat16Pair* panels, int64_t first, int64_t columns, Matrix c);
// C (M, N) = or += op(A) B, B pairs of rows (pairs(K), N), N a multiple of 16. kNo: A rows of pairs (M, pairs(K));
// kYes: A pairs of rows (pairs(K), M).
void bfloat16_matmul(ConstPairMatrix a, Transpose ta, ConstPairMatrix b, Matrix c, Write write);

}  // namespace lra
