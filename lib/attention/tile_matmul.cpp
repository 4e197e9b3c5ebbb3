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

#include "lib/ops/register_tiles-inl.h"

// Results fill the registers: 12 x 2 or 6 x 4 of 32, or 6 x 2 of 16.
constexpr bool kManyRegisters = !(HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3);
constexpr int kRows = kManyRegisters ? 12 : 6;

using Tag = hn::ScalableTag<float>;

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

struct Float32 {
  using Element = float;
  using Vector = hn::Vec<Tag>;
  using Sum = Vector;
  static HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }
  static HWY_INLINE Sum zero() { return hn::Zero(Tag()); }
  static HWY_INLINE Vector load(const float* p) { return hn::LoadU(Tag(), p); }
  static HWY_INLINE Vector broadcast(float x) { return hn::Set(Tag(), x); }
  static HWY_INLINE Sum multiply_add(Vector x, Vector y, Sum sum) { return hn::MulAdd(x, y, sum); }
  static HWY_INLINE void store(Sum sum, float* p) { hn::StoreU(sum, Tag(), p); }
  static HWY_INLINE void add(Sum sum, float* p) { hn::StoreU(hn::Add(hn::LoadU(Tag(), p), sum), Tag(), p); }
};

int64_t panel_width() { return 2 * lanes(); }

void scores(ConstMatrix a, const float* panels, int64_t first, int64_t columns, Matrix c) {
  const int64_t width = panel_width(), next = width * a.cols;
  TileOperands<float> o{a.data, panels + first * a.cols, a.stride, width, a.cols, next, c.data, c.stride, false};
  int64_t j = 0;
  if constexpr (kManyRegisters) {
    for (; j + width < columns; j += 2 * width, o.b += 2 * next, o.c += 2 * width) {
      tile_rows<Float32, kRows / 2, 4, false>(o, a.rows, 0);
    }
  }
  for (; j < columns; j += width, o.b += next, o.c += width) tile_rows<Float32, kRows, 2, false>(o, a.rows, 0);
}

template <bool kTransposed>
void matmul(ConstMatrix a, ConstMatrix b, Matrix c, bool add) {
  const TileOperands<float> o{a.data, b.data, a.stride, b.stride, b.rows, 2 * lanes(), c.data, c.stride, add};
  tile_product<Float32, kRows, kManyRegisters, kTransposed>(o, c.rows, b.cols);
}
void matmul_rows(ConstMatrix a, ConstMatrix b, Matrix c, bool add) { matmul<false>(a, b, c, add); }
void matmul_columns(ConstMatrix a, ConstMatrix b, Matrix c, bool add) { matmul<true>(a, b, c, add); }

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
