// Loops of families whose unscaled weights are a function of one score, e_j = a(x_j), included once a Highway target.
// row_of(i) gives the function of a row:
//   RowVector value(RowVector x)                 a(x)
//   RowVector slope(RowVector x, RowVector e)    a'(x), e = a(x)

// Per-target include guard
#if defined(LRA_ATTENTION_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LRA_ATTENTION_ELEMENTWISE_INL_H_
#undef LRA_ATTENTION_ELEMENTWISE_INL_H_
#else
#define LRA_ATTENTION_ELEMENTWISE_INL_H_
#endif

#include "lib/attention/row_loops-inl.h"
#include "lib/attention/score_activation.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// row_end(i, sum of the row's e, dropped ones included) follows each row.
template <class RowOf, class RowEnd>
HWY_INLINE void elementwise_forward(const ScoreTile& tile, const RowOf& row_of, const RowEnd& row_end) {
  for (int64_t i = 0; i < tile.s.rows; ++i) {
    float* s = tile.s.row(i);
    const auto row = row_of(i);
    RowVector sum = hn::Zero(RowTag());
    for_each_vector(tile.row_kept(i), tile.columns(i), [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = access.only(row.value(access.load(s + j, 0.0f)));
      sum = hn::Add(sum, e);
      access.store(access.keep(e, j), s + j);
    });
    row_end(i, sum_of(sum));
  }
}

// dx = a'(x) (g - offset(i)); row_end(i, sum of the row's dx) follows each row.
template <class RowOf, class Offset, class RowEnd>
HWY_INLINE void elementwise_backward(const ScoreTile& tile, Matrix gradients, const RowOf& row_of, const Offset& offset,
                                     const RowEnd& row_end) {
  for (int64_t i = 0; i < tile.s.rows; ++i) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    const auto row = row_of(i);
    const RowVector less = hn::Set(RowTag(), offset(i));
    RowVector sum = hn::Zero(RowTag());
    for_each_vector(tile.row_kept(i), tile.columns(i), [&](auto access, int64_t j) HWY_ATTR {
      const RowVector x = access.load(s + j, 0.0f), e = row.value(x);
      const RowVector dx =
          access.only(hn::Mul(row.slope(x, e), hn::Sub(access.keep(access.load(g + j, 0.0f), j), less)));
      sum = hn::Add(sum, dx);
      access.store(access.keep(e, j), s + j);
      access.store(dx, g + j);
    });
    row_end(i, sum_of(sum));
  }
}

struct NoOffset {
  HWY_INLINE float operator()(int64_t) const { return 0.0f; }
};
struct NoSum {
  HWY_INLINE void operator()(int64_t, float) const {}
};

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
