// AVX-512 BF16 by its intrinsics: the Highway version of Debian 12 does not know these instructions. Elsewhere
// bfloat16_supported() is false.
#include <algorithm>
#include <atomic>

#include "lib/ops/bfloat16.h"
#include "lib/ops/bfloat16_amx.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"

namespace lra {

void require_bfloat16(bool supported) {
  if (supported) return;
  throw InputError("precision bfloat16 needs a processor with AVX-512 BF16, this one has {}; use --precision float32",
                   instruction_set());
}

}  // namespace lra

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // inside GCC's own intrinsics (bug 105593)
#endif
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#endif

namespace lra {
namespace {

#include "lib/ops/register_tiles-inl.h"

constexpr int kRows = 12, kLanes = 16, kWidth = 2 * kLanes;  // 24 results of 32 registers

struct Pairs {
  using Vector = __m512bh;
  using Sum = __m512;
  static int64_t lanes() { return kLanes; }
  static Sum zero() { return _mm512_setzero_ps(); }
  static Vector load(const Bfloat16Pair* p) { return (__m512bh)_mm512_loadu_si512(p); }
  static Vector broadcast(Bfloat16Pair x) { return (__m512bh)_mm512_set1_epi32(static_cast<int>(x)); }
  static Sum multiply_add(Vector x, Vector y, Sum sum) { return _mm512_dpbf16_ps(sum, x, y); }
  static void store(Sum sum, float* p) { _mm512_storeu_ps(p, sum); }
  static void add(Sum sum, float* p) { _mm512_storeu_ps(p, _mm512_add_ps(_mm512_loadu_ps(p), sum)); }
};
using Operands = TileOperands<Bfloat16Pair>;

__mmask16 first(int64_t count) { return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1u << count) - 1u); }

// Two vectors, rounded: the numbers of `low` in the lower half of the result, those of `high` in the upper.
__m512i rounded(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

// Numbers of the lower and the upper half in turn.
__m512i pairs_of_halves(__m512i x) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, x);
}

void pack_row_pairs(ConstMatrix x, PairMatrix packed) {
  const int64_t whole = std::min(x.cols, packed.cols) / kLanes * kLanes;
  for (int64_t p = 0; p < packed.rows; ++p) {
    const float* low = x.row(2 * p);
    const float* high = 2 * p + 1 < x.rows ? x.row(2 * p + 1) : nullptr;
    int64_t j = 0;
    for (; high != nullptr && j < whole; j += kLanes) {
      const __m512i pairs = rounded(_mm512_loadu_ps(low + j), _mm512_loadu_ps(high + j));
      _mm512_storeu_si512(packed.row(p) + j, pairs_of_halves(pairs));
    }
    for (; j < packed.cols; j += kLanes) {
      const __mmask16 there = first(x.cols > j ? x.cols - j : 0), room = first(packed.cols - j);
      const __m512 a = _mm512_maskz_loadu_ps(there, low + j);
      const __m512 b = high == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(there, high + j);
      _mm512_mask_storeu_epi32(packed.row(p) + j, room, pairs_of_halves(rounded(a, b)));
    }
  }
}

void pack_rows(ConstMatrix x, PairMatrix packed) {
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* row = x.row(i);
    uint16_t* to = reinterpret_cast<uint16_t*>(packed.row(i));
    int64_t j = 0;
    for (; j + 2 * kLanes <= x.cols; j += 2 * kLanes) {
      _mm512_storeu_si512(to + j, rounded(_mm512_loadu_ps(row + j), _mm512_loadu_ps(row + j + kLanes)));
    }
    for (; j < 2 * packed.cols; j += kLanes) {
      const __m512 v = _mm512_maskz_loadu_ps(first(x.cols > j ? x.cols - j : 0), row + j);
      _mm256_mask_storeu_epi16(to + j, first(2 * packed.cols - j), (__m256i)_mm512_cvtneps_pbh(v));
    }
  }
}

// Sixteen rows at a time: rounded to a small square of pairs, then written column by column.
void pack_transposed(ConstMatrix x, Bfloat16Pair* panels) {
  const int64_t pairs = bfloat16_pairs(x.cols);
  alignas(64) Bfloat16Pair square[kLanes * 8];
  for (int64_t panel = 0; panel < x.rows; panel += kWidth, panels += kWidth * pairs) {
    for (int64_t part = 0; part < kWidth; part += kLanes) {
      for (int64_t d = 0; d < x.cols; d += kLanes) {
        const __mmask16 there = first(x.cols - d);
        for (int64_t i = 0; i < kLanes; ++i) {
          const int64_t row = panel + part + i;
          const __m512 v = row < x.rows ? _mm512_maskz_loadu_ps(there, x.row(row) + d) : _mm512_setzero_ps();
          _mm256_store_si256(reinterpret_cast<__m256i*>(square + 8 * i), (__m256i)_mm512_cvtneps_pbh(v));
        }
        const __m512i index = _mm512_setr_epi32(0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120);
        for (int64_t p = 0; p < 8 && d / 2 + p < pairs; ++p) {
          _mm512_storeu_si512(panels + (d / 2 + p) * kWidth + part, _mm512_i32gather_epi32(index, square + p, 4));
        }
      }
    }
  }
}

void matmul_panels(ConstPairMatrix a, const Bfloat16Pair* panels, int64_t first, int64_t columns, Matrix c) {
  const int64_t next = kWidth * a.cols;
  Operands o{a.data, panels + first * a.cols, a.stride, kWidth, a.cols, next, c.data, c.stride, false};
  for (int64_t j = 0; j < columns; j += kWidth, o.b += next, o.c += kWidth) {
    tile_rows<Pairs, kRows, 2, false>(o, a.rows, 0);
  }
}

template <bool kTransposed>
void matmul(ConstPairMatrix a, ConstPairMatrix b, Matrix c, bool add) {
  const Operands o{a.data, b.data, a.stride, b.stride, b.rows, kWidth, c.data, c.stride, add};
  tile_product<Pairs, kRows, false, kTransposed>(o, c.rows, b.cols);
}

}  // namespace
}  // namespace lra

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace lra {
namespace {

std::atomic<bool>& tiles_wanted() {
  static std::atomic<bool> wanted = true;
  return wanted;
}
bool use_tiles() { return amx_bfloat16_usable() && tiles_wanted(); }

}  // namespace

void use_bfloat16_tiles(bool wanted) { tiles_wanted() = wanted; }

bool bfloat16_supported() {
  static const bool supported = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
                                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return supported;
}

int64_t bfloat16_tile_rows() { return use_tiles() ? 16 : kRows; }

int64_t bfloat16_columns(int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

void bfloat16_pack_rows(ConstMatrix x, PairMatrix packed) {
  check(packed.rows == x.rows && packed.cols == bfloat16_pairs(x.cols), "({}, {}) packed into ({}, {}) pairs", x.rows,
        x.cols, packed.rows, packed.cols);
  pack_rows(x, packed);
}

void bfloat16_pack_row_pairs(ConstMatrix x, PairMatrix packed) {
  check(packed.rows == bfloat16_pairs(x.rows) && packed.cols >= x.cols, "({}, {}) packed into ({}, {}) pairs", x.rows,
        x.cols, packed.rows, packed.cols);
  pack_row_pairs(x, packed);
}

void bfloat16_pack_transposed(ConstMatrix x, Bfloat16Pair* panels) { pack_transposed(x, panels); }

void bfloat16_matmul_panels(ConstPairMatrix a, const Bfloat16Pair* panels, int64_t first, int64_t columns, Matrix c) {
  check(first % kWidth == 0 && c.rows == a.rows && c.stride >= bfloat16_columns(columns),
        "{} x {} of a product from column {} into ({}, {})", a.rows, columns, first, c.rows, c.stride);
  if (use_tiles()) {
    amx_matmul_panels(a, panels + first * a.cols, {c.data, c.rows, bfloat16_columns(columns), c.stride});
  } else {
    matmul_panels(a, panels, first, columns, c);
  }
}

void bfloat16_matmul(ConstPairMatrix a, Transpose ta, ConstPairMatrix b, Matrix c, Write write) {
  const int64_t m = ta == Transpose::kNo ? a.rows : a.cols, pairs = ta == Transpose::kNo ? a.cols : a.rows;
  check(b.rows == pairs && c.rows == m && c.cols == b.cols && b.cols % kLanes == 0,
        "product of ({}, {}) and ({}, {}) pairs into ({}, {})", m, pairs, b.rows, b.cols, c.rows, c.cols);
  if (use_tiles()) {
    amx_matmul(a, ta, b, c, write);
  } else if (ta == Transpose::kNo) {
    matmul<false>(a, b, c, write == Write::kAdd);
  } else {
    matmul<true>(a, b, c, write == Write::kAdd);
  }
}

}  // namespace lra

#else

namespace lra {

bool bfloat16_supported() { return false; }
void use_bfloat16_tiles(bool) {}
namespace {
[[noreturn]] void missing() { fail("bfloat16 products on a processor without them"); }
}  // namespace
int64_t bfloat16_tile_rows() { return 12; }
int64_t bfloat16_columns(int64_t n) { return n; }
void bfloat16_pack_rows(ConstMatrix, PairMatrix) { missing(); }
void bfloat16_pack_row_pairs(ConstMatrix, PairMatrix) { missing(); }
void bfloat16_pack_transposed(ConstMatrix, Bfloat16Pair*) { missing(); }
void bfloat16_matmul_panels(ConstPairMatrix, const Bfloat16Pair*, int64_t, int64_t, Matrix) { missing(); }
void bfloat16_matmul(ConstPairMatrix, Transpose, ConstPairMatrix, Matrix, Write) { missing(); }

}  // namespace lra
#endif
