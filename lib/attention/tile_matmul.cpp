#include "lib/attention/tile_matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/tile_matmul.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators fill the registers: 12 x 2 of 32, or 6 x 2 of 16.
constexpr int kVectors = 2;
constexpr int kRows = (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3) ? 6 : 12;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// Where element (row, p) of A lies: rows `step` apart (kTransposed false), or next to each other with p `step` apart.
template <int kCount, bool kTransposed>
struct Left {
  const float* base[(kCount + 3) / 4];  // of every fourth row: x86 addresses reach the three after it
  int64_t step;

  HWY_INLINE Left(const float* a, int64_t row_step) : step(row_step) {
    for (int i = 0; i < (kCount + 3) / 4; ++i) base[i] = a + 4 * i * (kTransposed ? 1 : step);
  }
  HWY_INLINE float operator()(int row, int64_t p) const {
    if constexpr (kTransposed) {
      return base[0][row + p * step];
    } else {
      return base[row / 4][(row % 4) * step + p];
    }
  }
};

template <int kCount, int kWidth, bool kTransposed>
HWY_INLINE void block(const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k, float* c,
                      int64_t c_step, bool add) {
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sum[kCount][kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kWidth; ++v) sum[i][v] = hn::Zero(d);
  }
  const Left<kCount, kTransposed> left(a, a_step);
  for (int64_t p = 0; p < k; ++p) {
    Vector right[kWidth];
#pragma GCC unroll 4
    for (int v = 0; v < kWidth; ++v) right[v] = hn::LoadU(d, b + p * b_step + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      const Vector x = hn::Set(d, left(i, p));
#pragma GCC unroll 4
      for (int v = 0; v < kWidth; ++v) sum[i][v] = hn::MulAdd(x, right[v], sum[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kWidth; ++v) {
      float* place = c + i * c_step + v * lanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, place), sum[i][v]) : sum[i][v], d, place);
    }
  }
}

// The rows that are left after whole blocks.
template <int kCount, int kWidth, bool kTransposed>
HWY_INLINE void last_rows(int64_t count, const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k,
                          float* c, int64_t c_step, bool add) {
  if constexpr (kCount > 0) {
    if (count == kCount) {
      block<kCount, kWidth, kTransposed>(a, a_step, b, b_step, k, c, c_step, add);
    } else {
      last_rows<kCount - 1, kWidth, kTransposed>(count, a, a_step, b, b_step, k, c, c_step, add);
    }
  }
}

template <int kWidth, bool kTransposed>
void rows(int64_t m, const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k, float* c,
          int64_t c_step, bool add) {
  const int64_t a_row = kTransposed ? 1 : a_step;
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) {
    block<kRows, kWidth, kTransposed>(a + i * a_row, a_step, b, b_step, k, c + i * c_step, c_step, add);
  }
  last_rows<kRows - 1, kWidth, kTransposed>(m - i, a + i * a_row, a_step, b, b_step, k, c + i * c_step, c_step, add);
}

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

void scores(ConstMatrix a, const float* panels, int64_t first, int64_t columns, Matrix c) {
  const int64_t width = kVectors * lanes();
  for (int64_t j = 0; j < columns; j += width) {
    rows<kVectors, false>(a.rows, a.data, a.stride, panels + (first + j) * a.cols, width, a.cols, c.data + j, c.stride,
                          false);
  }
}

template <bool kTransposed>
HWY_INLINE void multiply(ConstMatrix a, int64_t m, int64_t k, ConstMatrix b, Matrix c, bool add) {
  const int64_t lane_count = lanes(), width = kVectors * lane_count;
  int64_t j = 0;
  for (; j + width <= b.cols; j += width) {
    rows<kVectors, kTransposed>(m, a.data, a.stride, b.data + j, b.stride, k, c.data + j, c.stride, add);
  }
  for (; j < b.cols; j += lane_count) {
    rows<1, kTransposed>(m, a.data, a.stride, b.data + j, b.stride, k, c.data + j, c.stride, add);
  }
}

void matmul_rows(ConstMatrix a, ConstMatrix b, Matrix c, bool add) { multiply<false>(a, a.rows, a.cols, b, c, add); }
void matmul_columns(ConstMatrix a, ConstMatrix b, Matrix c, bool add) { multiply<true>(a, a.cols, a.rows, b, c, add); }

int64_t panel_width() { return kVectors * lanes(); }

// Four rows from x on, transposed into columns of `to`, four numbers of each at a time.
HWY_INLINE void transpose_rows(const float* x, int64_t x_step, int64_t columns, float* to, int64_t to_step) {
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  for (; j + 4 <= columns; j += 4, x += 4, to += 4 * to_step) {
    const auto r0 = hn::LoadU(d, x), r1 = hn::LoadU(d, x + x_step);
    const auto r2 = hn::LoadU(d, x + 2 * x_step), r3 = hn::LoadU(d, x + 3 * x_step);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_step);
  }
#endif
  for (; j < columns; ++j, ++x, to += to_step) {
    for (int64_t i = 0; i < 4; ++i) to[i] = x[i * x_step];
  }
}

void pack_transposed(ConstMatrix x, float* panels) {
  const int64_t width = panel_width();
  for (int64_t first = 0; first < x.rows; first += width, panels += width * x.cols) {
    const int64_t count = HWY_MIN(width, x.rows - first);
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) transpose_rows(x.row(first + i), x.stride, x.cols, panels + i, width);
    for (int64_t d = 0; d < x.cols; ++d) {
      float* column = panels + d * width;
      for (int64_t j = i; j < width; ++j) column[j] = j < count ? x.row(first + j)[d] : 0.0f;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lib/util/check.h"

namespace lra {

HWY_EXPORT(lanes);
HWY_EXPORT(panel_width);
HWY_EXPORT(pack_transposed);
HWY_EXPORT(scores);
HWY_EXPORT(matmul_rows);
HWY_EXPORT(matmul_columns);

namespace {

int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

}  // namespace

int64_t padded_width(int64_t d) { return round_up(d, HWY_DYNAMIC_DISPATCH(lanes)()); }
int64_t padded_columns(int64_t columns) { return round_up(columns, HWY_DYNAMIC_DISPATCH(panel_width)()); }

void pack_transposed(ConstMatrix x, float* panels) { HWY_DYNAMIC_DISPATCH(pack_transposed)(x, panels); }

void tile_scores(ConstMatrix a, const float* panels, int64_t first, int64_t columns, Matrix c) {
  check(first % padded_columns(1) == 0 && c.rows == a.rows && c.stride >= padded_columns(columns),
        "tile of {} x {} scores from key {} into ({}, {})", a.rows, columns, first, c.rows, c.stride);
  HWY_DYNAMIC_DISPATCH(scores)(a, panels, first, columns, c);
}

void tile_matmul(ConstMatrix a, Transpose ta, ConstMatrix b, Matrix c, Write write) {
  const int64_t m = ta == Transpose::kNo ? a.rows : a.cols, k = ta == Transpose::kNo ? a.cols : a.rows;
  check(b.rows == k && c.rows == m && c.cols == b.cols && b.cols == padded_width(b.cols),
        "tile product of ({}, {}) and ({}, {}) into ({}, {})", m, k, b.rows, b.cols, c.rows, c.cols);
  if (ta == Transpose::kNo) {
    HWY_DYNAMIC_DISPATCH(matmul_rows)(a, b, c, write == Write::kAdd);
  } else {
    HWY_DYNAMIC_DISPATCH(matmul_columns)(a, b, c, write == Write::kAdd);
  }
}

}  // namespace lra
#endif
