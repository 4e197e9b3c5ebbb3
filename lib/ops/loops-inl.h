// Loops shared by the elementwise and column-wise ops (Highway, compiled once a target): whole vectors first, then one
// lane at a time, so that nothing outside a row is ever read or written whatever its width.
#if defined(LRA_OPS_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LRA_OPS_LOOPS_INL_H_
#undef LRA_OPS_LOOPS_INL_H_
#else
#define LRA_OPS_LOOPS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "lib/tensor/view.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// body(d, i) handles the Lanes(d) elements from i; d is a full vector or a single lane.
template <class Body>
HWY_INLINE void for_each_lanes(int64_t count, Body body) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(d, i);
  for (; i < count; ++i) body(one, i);
}

// body(row, count) for every row; one call with all elements from row 0 when no view has gaps between its rows.
template <class Body>
HWY_INLINE void for_each_run(int64_t rows, int64_t cols, bool gapless, Body body) {
  if (gapless) {
    body(int64_t{0}, rows * cols);
  } else {
    for (int64_t row = 0; row < rows; ++row) body(row, cols);
  }
}

// out_j += sum_i f(row i, column j), summed in blocks of 32 rows and the blocks one after another: a fixed order, and
// an error that grows with the number of blocks only. term(d, row, column) gives a vector.
template <class Term>
HWY_INLINE void add_column_sums(int64_t rows, int64_t cols, float* HWY_RESTRICT out, Term term) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr int64_t kBlock = 32;
  const hn::ScalableTag<float> full;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(full));
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t last = first + kBlock < rows ? first + kBlock : rows;
    int64_t column = 0;
    for (; column + 4 * lanes <= cols; column += 4 * lanes) {
      auto s0 = hn::Zero(full), s1 = s0, s2 = s0, s3 = s0;
      for (int64_t row = first; row < last; ++row) {
        s0 = hn::Add(s0, term(full, row, column));
        s1 = hn::Add(s1, term(full, row, column + lanes));
        s2 = hn::Add(s2, term(full, row, column + 2 * lanes));
        s3 = hn::Add(s3, term(full, row, column + 3 * lanes));
      }
      float* HWY_RESTRICT to = out + column;
      hn::StoreU(hn::Add(hn::LoadU(full, to), s0), full, to);
      hn::StoreU(hn::Add(hn::LoadU(full, to + lanes), s1), full, to + lanes);
      hn::StoreU(hn::Add(hn::LoadU(full, to + 2 * lanes), s2), full, to + 2 * lanes);
      hn::StoreU(hn::Add(hn::LoadU(full, to + 3 * lanes), s3), full, to + 3 * lanes);
    }
    for_each_lanes(cols - column, [&](auto d, int64_t i) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (int64_t row = first; row < last; ++row) sum = hn::Add(sum, term(d, row, column + i));
      hn::StoreU(hn::Add(hn::LoadU(d, out + column + i), sum), d, out + column + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#endif  // LRA_OPS_LOOPS_INL_H_
