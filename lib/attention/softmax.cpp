// Softmax attention: P = exp(x - max) / sum (Vaswani et al. 2017, equation 1). Statistics of a row: 1 / sum, max.
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

void softmax_row_forward(int64_t n, float* s, float* statistics) {
  const RowTag d;
  const float lowest = hwy::LowestValue<float>();
  RowVector top = hn::Set(d, lowest);
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR { top = hn::Max(top, access.load(s + j, lowest)); });
  const RowVector max = hn::MaxOfLanes(d, top);
  RowVector sum = hn::Zero(d);
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector e = access.only(vector_exp_negative(d, hn::Sub(access.load(s + j, lowest), max)));
    sum = hn::Add(sum, e);
    access.store(e, s + j);
  });
  statistics[0] = 1.0f / hn::GetLane(hn::SumOfLanes(d, sum));
  statistics[1] = hn::GetLane(max);
}

// dx_j = p_j (dP_j - t), t = sum_j p_j dP_j.
void softmax_row_backward(int64_t n, const float* statistics, float row_dot, float* s, float* g) {
  const RowTag d;
  const RowVector max = hn::Set(d, statistics[1]);
  const RowVector t = hn::Set(d, statistics[0] * row_dot);
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector e = vector_exp_negative(d, hn::Sub(access.load(s + j, 0.0f), max));
    access.store(e, s + j);
    access.store(hn::Mul(e, hn::Sub(access.load(g + j, 0.0f), t)), g + j);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(softmax_row_forward);
HWY_EXPORT(softmax_row_backward);

class Softmax final : public ScoreActivation {
 public:
  int statistics() const override { return 2; }
  void forward(const ScoreRow& row, float* s, float* statistics) const override {
    HWY_DYNAMIC_DISPATCH(softmax_row_forward)(row.keys, s, statistics);
  }
  void backward(const ScoreRow& row, const float* statistics, float row_dot, float* s, float* g,
                std::span<float* const>) const override {
    HWY_DYNAMIC_DISPATCH(softmax_row_backward)(row.keys, statistics, row_dot, s, g);
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
            return std::make_unique<RowPanelKernel>(shape, spec, std::vector<KernelParameter>(),
                                                    std::make_unique<Softmax>());
          }};
}

}  // namespace lra
#endif
