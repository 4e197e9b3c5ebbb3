// The products of the tiled driver in float32 and in bfloat16, one interface: the driver is a template over it.
// Operands of a product A B, with N tokens and head width D:
// - Left: rows (M, D) of A, taken a few at a time;
// - Columns: X (N, D) as B = Xᵀ, for scores;
// - Rows: X (N, D) as B = X, summed over rows.
// Internal to tiled_kernel.cpp.
#pragma once

#include <algorithm>

#include "lib/attention/row_kernels.h"
#include "lib/attention/tile_matmul.h"
#include "lib/ops/bfloat16.h"
#include "lib/tensor/arena.h"
#include "lib/util/phases.h"

namespace lra {

// Rows of a tile apart by an odd number of cache lines, so that they do not share cache sets.
inline int64_t tile_stride(int64_t columns) { return (columns + 31) / 32 * 32 + 16; }

struct Float32Products {
  using Left = ConstMatrix;
  using Columns = const float*;
  using Rows = ConstMatrix;

  static int64_t width(int64_t d) { return padded_width(d); }
  // Queries whose scores are computed and turned into weights at a time.
  static int64_t tile_rows() { return kTileRows; }

  static Columns columns(ConstMatrix x, Arena& arena) {
    float* panels = arena.floats(padded_columns(x.rows) * x.cols);
    const PhaseScope phase(Phase::kPacking);
    pack_transposed(x, panels);
    return panels;
  }
  static Rows rows(ConstMatrix x, Arena& arena) {
    if (x.cols == width(x.cols) && x.stride == x.cols) return x;  // whole vectors without gaps
    const Matrix packed = arena.matrix(x.rows, width(x.cols));
    scale_rows(1.0f, nullptr, 0, x, packed);
    return packed;
  }
  static Rows row_block(Rows x, int64_t first, int64_t count) { return x.row_block(first, count); }
  static Left left(ConstMatrix x, Arena&) { return x; }
  static void scores(Left a, Columns b, int64_t key, int64_t keys, Matrix s) { tile_scores(a, b, key, keys, s); }

  // Scores of a block of queries with a tile of keys, computed and turned into weights a few rows at a time.
  class Tile {
   public:
    Tile(int64_t queries, int64_t keys, Arena& arena)
        : stride_(tile_stride(keys)), data_(arena.floats(queries * stride_)) {}
    // Where the rows at … at + rows - 1 belong.
    Matrix panel(int64_t at, int64_t rows, int64_t keys) const { return {data_ + at * stride_, rows, keys, stride_}; }
    void finish(ConstMatrix, int64_t) {}
    // C (W) = or += panel B.
    void multiply(ConstMatrix panel, Rows b, Matrix c, Write write) { tile_matmul(panel, Transpose::kNo, b, c, write); }
    // C (keys, W) = or += tileᵀ B, over all rows that were finished.
    void multiply_transposed(int64_t rows, int64_t keys, Rows b, Matrix c, Write write) {
      tile_matmul(panel(0, rows, keys), Transpose::kYes, b, c, write);
    }

   private:
    int64_t stride_;
    float* data_;
  };
};

struct Bfloat16Products {
  using Left = ConstPairMatrix;
  using Columns = const Bfloat16Pair*;
  using Rows = ConstPairMatrix;

  static int64_t width(int64_t d) { return bfloat16_width(d); }
  static int64_t tile_rows() { return bfloat16_tile_rows(); }

  static Columns columns(ConstMatrix x, Arena& arena) {
    const PairMatrix panels = bfloat16_matrix(bfloat16_columns(x.rows), bfloat16_pairs(x.cols), arena);
    const PhaseScope phase(Phase::kPacking);
    bfloat16_pack_transposed(x, panels.data);
    return panels.data;
  }
  static Rows rows(ConstMatrix x, Arena& arena) {
    const PairMatrix packed = bfloat16_matrix(bfloat16_pairs(x.rows), width(x.cols), arena);
    const PhaseScope phase(Phase::kPacking);
    bfloat16_pack_row_pairs(x, packed);
    return packed;
  }
  // first is even.
  static Rows row_block(Rows x, int64_t first, int64_t count) { return x.row_block(first / 2, bfloat16_pairs(count)); }
  static Left left(ConstMatrix x, Arena& arena) {
    const PairMatrix packed = bfloat16_matrix(x.rows, bfloat16_pairs(x.cols), arena);
    const PhaseScope phase(Phase::kPacking);
    bfloat16_pack_rows(x, packed);
    return packed;
  }
  static void scores(Left a, Columns b, int64_t key, int64_t keys, Matrix s) {
    bfloat16_matmul_panels(a, b, key, keys, s);
  }

  class Tile {
   public:
    Tile(int64_t queries, int64_t keys, Arena& arena)
        : stride_(tile_stride(keys)),
          panel_(arena.floats(tile_rows() * stride_)),
          rounded_(bfloat16_matrix(tile_rows(), tile_stride(bfloat16_pairs(keys)), arena)),
          finished_(bfloat16_matrix(bfloat16_pairs(queries), stride_, arena)) {}
    Matrix panel(int64_t, int64_t rows, int64_t keys) const { return {panel_, rows, keys, stride_}; }
    // at is even.
    void finish(ConstMatrix panel, int64_t at) {
      const PhaseScope phase(Phase::kPacking);
      bfloat16_pack_row_pairs(panel, finished(at / 2, bfloat16_pairs(panel.rows), panel.cols));
    }
    void multiply(ConstMatrix panel, Rows b, Matrix c, Write write) {
      const PairMatrix left(rounded_.data, panel.rows, bfloat16_pairs(panel.cols), rounded_.stride);
      {
        const PhaseScope phase(Phase::kPacking);
        bfloat16_pack_rows(panel, left);
      }
      bfloat16_matmul(left, Transpose::kNo, b, c, write);
    }
    void multiply_transposed(int64_t rows, int64_t keys, Rows b, Matrix c, Write write) {
      bfloat16_matmul(finished(0, bfloat16_pairs(rows), keys), Transpose::kYes, b, c, write);
    }

   private:
    PairMatrix finished(int64_t first, int64_t rows, int64_t cols) const {
      return {finished_.row(first), rows, cols, finished_.stride};
    }
    int64_t stride_;
    float* panel_;
    PairMatrix rounded_, finished_;
  };
};

}  // namespace lra
