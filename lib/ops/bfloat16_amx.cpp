#include "lib/ops/bfloat16_amx.h"

#include "lib/util/check.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // inside GCC's own intrinsics (bug 105593)
#endif
#include <immintrin.h>

#include <algorithm>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,amx-tile,amx-bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,amx-tile,amx-bf16")
#endif

namespace lra {
namespace {

constexpr int64_t kSide = 16;  // rows of a tile, and its pairs or floats across

// Shapes of the eight tile registers (Intel 64 manual, LDTILECFG).
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int64_t row_count, int64_t columns) {
    rows[tile] = static_cast<uint8_t>(row_count);
    row_bytes[tile] = static_cast<uint16_t>(4 * columns);
  }
};

// The registers, whose numbers the intrinsics want as literals: 0 and 1 results; 2 A, 3 and 4 B in whole steps along
// the inner index; 5 A, 6 and 7 B with its last pairs.
// GCC's intrinsics do not say that they read memory: what they are to find at `from` is written before this.
void finish_writes(const void* from) { asm volatile("" ::"r"(from) : "memory"); }

void configure(int64_t rows, int64_t last_pairs) {
  TileShapes shapes;
  for (const int tile : {0, 1, 2}) shapes.set(tile, rows, kSide);
  for (const int tile : {3, 4}) shapes.set(tile, kSide, kSide);
  if (last_pairs > 0) {
    shapes.set(5, rows, last_pairs);
    for (const int tile : {6, 7}) shapes.set(tile, last_pairs, kSide);
  }
  finish_writes(&shapes);
  _tile_loadconfig(&shapes);
}

// The rows of A that a block of results needs, as rows of pairs.
class LeftRows {
 public:
  // memory: kSide * pairs, for a transposed A.
  LeftRows(ConstPairMatrix a, Transpose ta, int64_t row, int64_t rows, int64_t pairs, Bfloat16Pair* memory) {
    if (ta == Transpose::kNo) {
      data_ = a.row(row), stride_ = a.stride;
      return;
    }
    data_ = memory, stride_ = (pairs + kSide - 1) / kSide * kSide;
    for (int64_t p = 0; p < pairs; p += kSide) transpose(a, p, std::min(kSide, pairs - p), row, rows, memory + p);
    finish_writes(memory);
  }
  const Bfloat16Pair* at(int64_t pair) const { return data_ + pair; }
  int64_t step() const { return 4 * stride_; }  // bytes

 private:
  // 16 x 16 numbers of 32 bits: four rounds of interleaving, ever larger pieces.
  void transpose(ConstPairMatrix a, int64_t pair, int64_t pairs, int64_t row, int64_t rows, Bfloat16Pair* to) const {
    const auto there = static_cast<__mmask16>(rows >= kSide ? 0xFFFF : (1u << rows) - 1u);
    __m512i x[kSide], y[kSide];
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) {
      x[i] = i < pairs ? _mm512_maskz_loadu_epi32(there, a.row(pair + i) + row) : _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (int i = 0; i < kSide; i += 2) {
      y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
      y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kSide; i += 4) {
      x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
      x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
      x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
      x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    // x[4 g + r]: quarter q holds column 4 q + r of the rows 4 g … 4 g + 3.
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m512i low01 = _mm512_shuffle_i32x4(x[r], x[4 + r], 0x44),
                    low23 = _mm512_shuffle_i32x4(x[8 + r], x[12 + r], 0x44);
      const __m512i high01 = _mm512_shuffle_i32x4(x[r], x[4 + r], 0xEE),
                    high23 = _mm512_shuffle_i32x4(x[8 + r], x[12 + r], 0xEE);
      y[r] = _mm512_shuffle_i32x4(low01, low23, 0x88);
      y[4 + r] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
      y[8 + r] = _mm512_shuffle_i32x4(high01, high23, 0x88);
      y[12 + r] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
    }
    for (int64_t i = 0; i < rows; ++i) _mm512_storeu_si512(to + i * stride_, y[i]);
  }

  const Bfloat16Pair* data_;
  int64_t stride_;
};

// B: rows of pairs `step` apart, the columns of 32 from number j on at j * column_step.
struct Right {
  const Bfloat16Pair* data;
  int64_t pairs, step, column_step;

  const Bfloat16Pair* at(int64_t pair, int64_t column) const { return data + pair * step + column * column_step; }
};

// A block of up to 16 rows with 16 or 32 columns from `column` on.
template <bool kTwo>
void block(const LeftRows& left, const Right& b, int64_t column, int64_t rows, float* c, int64_t c_step, bool add) {
  const int64_t b_step = 4 * b.step, whole = b.pairs / kSide * kSide;
  _tile_zero(0);
  if (kTwo) _tile_zero(1);
  for (int64_t p = 0; p < whole; p += kSide) {
    const Bfloat16Pair* right = b.at(p, column);
    _tile_loadd(2, left.at(p), left.step());
    _tile_loadd(3, right, b_step);
    _tile_dpbf16ps(0, 2, 3);
    if (kTwo) {
      _tile_loadd(4, right + kSide, b_step);
      _tile_dpbf16ps(1, 2, 4);
    }
  }
  if (whole < b.pairs) {
    const Bfloat16Pair* right = b.at(whole, column);
    _tile_loadd(5, left.at(whole), left.step());
    _tile_loadd(6, right, b_step);
    _tile_dpbf16ps(0, 5, 6);
    if (kTwo) {
      _tile_loadd(7, right + kSide, b_step);
      _tile_dpbf16ps(1, 5, 7);
    }
  }
  if (!add) {
    _tile_stored(0, c, c_step);
    if (kTwo) _tile_stored(1, c + kSide, c_step);
    return;
  }
  // The whole sum is added at once, as if it had been computed elsewhere: its bits do not depend on that.
  constexpr int64_t kWidth = kTwo ? 2 * kSide : kSide;
  alignas(64) float sum[kSide * kWidth];
  _tile_stored(0, sum, 4 * kWidth);
  if (kTwo) _tile_stored(1, sum + kSide, 4 * kWidth);
  for (int64_t i = 0; i < rows; ++i) {
    float* row = c + i * (c_step / 4);
    for (int64_t j = 0; j < kWidth; j += kSide) {
      _mm512_storeu_ps(row + j, _mm512_add_ps(_mm512_loadu_ps(row + j), _mm512_load_ps(sum + i * kWidth + j)));
    }
  }
}

void product(ConstPairMatrix a, Transpose ta, const Right& b, Matrix c, Write write) {
  // Deeper than this the sum is made in parts, which are added to the result in their order.
  constexpr int64_t kDeepest = 1024;
  alignas(64) Bfloat16Pair memory[kSide * kDeepest];
  for (int64_t first = 0; first == 0 || first < b.pairs; first += kDeepest) {
    const int64_t pairs = std::min(kDeepest, b.pairs - first);
    const Right part{b.data + first * b.step, pairs, b.step, b.column_step};
    const ConstPairMatrix a_part = ta == Transpose::kNo ? a.col_block(first, pairs) : a.row_block(first, pairs);
    const bool add = write == Write::kAdd || first > 0;
    int64_t configured = 0;
    for (int64_t row = 0; row < c.rows; row += kSide) {
      const int64_t rows = std::min(kSide, c.rows - row);
      if (rows != configured) configure(rows, pairs % kSide);
      configured = rows;
      const LeftRows left(a_part, ta, row, rows, pairs, memory);
      int64_t column = 0;
      for (; column + 2 * kSide <= c.cols; column += 2 * kSide) {
        block<true>(left, part, column, rows, c.row(row) + column, 4 * c.stride, add);
      }
      if (column < c.cols) block<false>(left, part, column, rows, c.row(row) + column, 4 * c.stride, add);
    }
  }
  _tile_release();
}

}  // namespace

void amx_matmul_panels(ConstPairMatrix a, const Bfloat16Pair* panels, Matrix c) {
  product(a, Transpose::kNo, {panels, a.cols, 2 * kSide, a.cols}, c, Write::kOver);
}

void amx_matmul(ConstPairMatrix a, Transpose ta, ConstPairMatrix b, Matrix c, Write write) {
  product(a, ta, {b.data, b.rows, b.stride, 1}, c, write);
}

}  // namespace lra

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace lra {
namespace {
[[noreturn]] void missing() {
  check(false, "AMX on another processor");
  __builtin_unreachable();
}
}  // namespace
void amx_matmul_panels(ConstPairMatrix, const Bfloat16Pair*, Matrix) { missing(); }
void amx_matmul(ConstPairMatrix, Transpose, ConstPairMatrix, Matrix, Write) { missing(); }
}  // namespace lra
#endif
