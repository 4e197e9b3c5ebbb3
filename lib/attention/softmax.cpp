// Softmax attention: P_j = exp(x_j - m) / sum exp(x - m), m = max x (Vaswani et al. 2017). Large negative scores
// underflow to weight 0. Backward: dx_j = p_j (dP_j - t), t = sum_j p_j dP_j.
#include "lib/attention/online_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/softmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/online_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

void softmax_forward(const ScoreTile& tile, float* statistics, float* earlier) {
  online_softmax_forward(tile, statistics, earlier, [](int64_t) HWY_ATTR { return SameScore(); });
}

void softmax_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g) {
  online_softmax_backward(
      tile, statistics, row_dots, g, [](int64_t) HWY_ATTR { return SameScore(); }, NoRowEnd());
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lib/attention/families.h"

namespace lra {

HWY_EXPORT(softmax_forward);
HWY_EXPORT(softmax_backward);

void softmax_rows_forward(const ScoreTile& tile, float* statistics, float* earlier) {
  HWY_DYNAMIC_DISPATCH(softmax_forward)(tile, statistics, earlier);
}

void softmax_rows_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g) {
  HWY_DYNAMIC_DISPATCH(softmax_backward)(tile, statistics, row_dots, g);
}

namespace {

class Softmax final : public OnlineSoftmax {
 public:
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    softmax_rows_forward(tile, statistics, earlier);
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients&) const override {
    softmax_rows_backward(tile, statistics, row_dots, g);
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    return ratio_jacobian_square(p, tile.keys(i), [&](int64_t k) { return p[k]; });
  }
};

}  // namespace

std::vector<AttentionFamily> softmax_families() {
  return {{.name = "softmax",
           .idea = "exp(x) / Σ exp(x): the baseline",
           .source = "Vaswani et al. 2017, arXiv 1706.03762",
           .kind = "row-wise",
           .cost = "4f + 1E",
           .causal = true,
           .make = [](const AttentionSpec& spec,
                      const AttentionShape& shape) { return make_tiled(spec, shape, std::make_unique<Softmax>()); },
           .reference = ref::rows([](const ref::RowPlace&, const ref::Row& x) { return ref::softmax(x); }),
           .examples = {"softmax", "softmax:causal=1", "softmax+xsa"}}};
}

}  // namespace lra
#endif
