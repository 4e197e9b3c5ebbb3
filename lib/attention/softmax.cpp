// Softmax attention: P = exp(x - max) / sum (Vaswani et al. 2017, equation 1). Statistics of a row: the sum, at the end
// 1 / sum, and the maximum.
#include <limits>

#include "lib/attention/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/softmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// Statistics hold the sum and the maximum of the tiles before this one.
void softmax_forward(const ScoreTile& tile, float* statistics, float* earlier) {
  const RowTag d;
  const int64_t n = tile.s.cols;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    const RowVector before = hn::Set(d, statistics[1]);
    RowVector top = before;
    for_each_vector(
        n, [&](auto access, int64_t j) HWY_ATTR { top = hn::Max(top, access.load(s + j, hwy::LowestValue<float>())); });
    const RowVector max = hn::MaxOfLanes(d, top);
    RowVector sum = hn::Zero(d);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = access.only(vector_exp_negative(d, hn::Sub(access.load(s + j, 0.0f), max)));
      sum = hn::Add(sum, e);
      access.store(access.keep(e, j), s + j);
    });
    earlier[i] = hn::GetLane(vector_exp_negative(d, hn::Sub(before, max)));
    statistics[0] = statistics[0] * earlier[i] + hn::GetLane(hn::SumOfLanes(d, sum));
    statistics[1] = hn::GetLane(max);
  }
}

// dx_j = p_j (dP_j - t), t = sum_j p_j dP_j.
void softmax_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix gradients) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    const RowVector max = hn::Set(d, statistics[1]);
    const RowVector t = hn::Set(d, statistics[0] * row_dots[i]);
    for_each_vector(tile.row_kept(i), tile.s.cols, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = vector_exp_negative(d, hn::Sub(access.load(s + j, 0.0f), max));
      access.store(access.keep(e, j), s + j);
      access.store(hn::Mul(e, hn::Sub(access.keep(access.load(g + j, 0.0f), j), t)), g + j);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(softmax_forward);
HWY_EXPORT(softmax_backward);

class Softmax final : public ScoreActivation {
 public:
  int statistics() const override { return 2; }
  void forward_begin(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i) {
      statistics[2 * i] = 0.0f;
      statistics[2 * i + 1] = std::numeric_limits<float>::lowest();
    }
  }
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    HWY_DYNAMIC_DISPATCH(softmax_forward)(tile, statistics, earlier);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i) statistics[2 * i] = 1.0f / statistics[2 * i];
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                std::span<float* const>) const override {
    HWY_DYNAMIC_DISPATCH(softmax_backward)(tile, statistics, row_dots, g);
  }
};

}  // namespace

AttentionFamily softmax_family() {
  return {.name = "softmax",
          .options = {},
          .idea = "exp(x) normalised to sum 1: the baseline",
          .source = "Vaswani et al. 2017, arXiv 1706.03762",
          .kind = "row-wise",
          .validate = [](const AttentionSpec&) {},
          .make = [](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
            return std::make_unique<TiledKernel>(shape, spec, std::vector<KernelParameter>(),
                                                 std::make_unique<Softmax>());
          }};
}

}  // namespace lra
#endif
