// Loops of online softmax, included once a Highway target. row_of(i) gives what a row's scores become:
//   RowVector value(RowVector x, int64_t j)                  z of the scores of the keys number j … of the tile
//   RowVector pull_back(RowVector x, RowVector dz, int64_t j)  dL/dx from dL/dz; may add to sums of its own

// Per-target include guard
#if defined(LRA_ATTENTION_ONLINE_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LRA_ATTENTION_ONLINE_SOFTMAX_INL_H_
#undef LRA_ATTENTION_ONLINE_SOFTMAX_INL_H_
#else
#define LRA_ATTENTION_ONLINE_SOFTMAX_INL_H_
#endif

#include "lib/attention/row_loops-inl.h"
#include "lib/attention/score_activation.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// z = x: computed again rather than stored.
struct SameScore {
  static constexpr bool kFree = true;
  HWY_INLINE RowVector value(RowVector x, int64_t) const { return x; }
  HWY_INLINE RowVector pull_back(RowVector, RowVector dz, int64_t) const { return dz; }
};

template <class RowOf>
HWY_INLINE void online_softmax_forward(const ScoreTile& tile, float* statistics, float* earlier, const RowOf& row_of) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    const int64_t n = tile.columns(i);
    auto row = row_of(i);
    constexpr bool kFree = decltype(row)::kFree;
    const RowVector before = hn::Set(d, statistics[1]);
    if constexpr (!kFree) {
      for_each_vector(
          n, [&](auto access, int64_t j) HWY_ATTR { access.store(row.value(access.load(s + j, 0.0f), j), s + j); });
    }
    const RowVector max = max_of(n, s, before);
    RowVector sum = hn::Zero(d);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = access.only(vector_exp_negative(d, hn::Sub(access.load(s + j, 0.0f), max)));
      sum = hn::Add(sum, e);
      access.store(access.keep(e, j), s + j);
    });
    earlier[i] = hn::GetLane(vector_exp_negative(d, hn::Sub(before, max)));
    statistics[0] = statistics[0] * earlier[i] + sum_of(sum);
    statistics[1] = hn::GetLane(max);
  }
}

// dz_j = p_j (dP_j - t), t = sum_j p_j dP_j. row_end(i, row, t) follows each row.
template <class RowOf, class RowEnd>
HWY_INLINE void online_softmax_backward(const ScoreTile& tile, const float* statistics, const float* row_dots,
                                        Matrix gradients, const RowOf& row_of, const RowEnd& row_end) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    auto row = row_of(i);
    const RowVector max = hn::Set(d, statistics[1]);
    const RowVector t = hn::Set(d, statistics[0] * row_dots[i]);
    for_each_vector(tile.row_kept(i), tile.columns(i), [&](auto access, int64_t j) HWY_ATTR {
      const RowVector x = access.load(s + j, 0.0f);
      const RowVector e = access.only(vector_exp_negative(d, hn::Sub(row.value(x, j), max)));
      access.store(access.keep(e, j), s + j);
      const RowVector dz = hn::Mul(e, hn::Sub(access.keep(access.load(g + j, 0.0f), j), t));
      access.store(row.pull_back(x, dz, j), g + j);
    });
    row_end(i, row, row_dots[i]);
  }
}

struct NoRowEnd {
  template <class Row>
  HWY_INLINE void operator()(int64_t, const Row&, float) const {}
};

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
