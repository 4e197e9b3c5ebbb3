// Sigsoftmax: P_j = e^x_j σ(x_j) / Σ e^x σ(x) (Kanai et al. 2018, arXiv 1805.10829, proposed for output layers), which
// is softmax of z = x - softplus(-x). Backward: softmax's, times dz/dx = 2 - σ(x).
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/sigsoftmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "lib/attention/online_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

struct SigsoftmaxRow {
  static constexpr bool kFree = false;

  HWY_INLINE RowVector value(RowVector x, int64_t) const {
    const RowTag d;
    const RowVector e = vector_exp_negative(d, hn::Neg(hn::Abs(x)));
    return hn::Sub(hn::Min(x, hn::Add(x, x)), hn::Log1p(d, e));  // x - max(-x, 0) - log(1 + e^-|x|)
  }
  HWY_INLINE RowVector pull_back(RowVector x, RowVector dz, int64_t) const {
    const RowTag d;
    const RowVector e = vector_exp_negative(d, hn::Neg(hn::Abs(x))), one = hn::Set(d, 1.0f);
    const RowVector other = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), one, e), hn::Add(one, e));  // 1 - σ(x)
    return hn::MulAdd(other, dz, dz);
  }
};

void sigsoftmax_forward(const ScoreTile& tile, float* statistics, float* earlier) {
  online_softmax_forward(tile, statistics, earlier, [](int64_t) HWY_ATTR { return SigsoftmaxRow(); });
}
void sigsoftmax_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g) {
  online_softmax_backward(
      tile, statistics, row_dots, g, [](int64_t) HWY_ATTR { return SigsoftmaxRow(); }, NoRowEnd());
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(sigsoftmax_forward);
HWY_EXPORT(sigsoftmax_backward);

class Sigsoftmax final : public OnlineSoftmax {
 public:
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    HWY_DYNAMIC_DISPATCH(sigsoftmax_forward)(tile, statistics, earlier);
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(sigsoftmax_backward)(tile, statistics, row_dots, g);
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    const float* x = tile.s.row(i);
    return ratio_jacobian_square(p, tile.keys(i),
                                 [&](int64_t k) { return (2.0 - 1.0 / (1.0 + std::exp(-x[k]))) * p[k]; });
  }
};

}  // namespace

std::vector<AttentionFamily> sigsoftmax_families() {
  return {{.name = "sigsoftmax",
           .idea = "e^x σ(x) / Σ e^x σ(x)",
           .source = "arXiv 1805.10829",
           .kind = "row-wise",
           .cost = "6f + 3E",
           .ours = "the source has it as an output layer",
           .causal = true,
           .make = [](const AttentionSpec& spec,
                      const AttentionShape& shape) { return make_tiled(spec, shape, std::make_unique<Sigsoftmax>()); },
           .reference = ref::rows([](const ref::RowPlace&, const ref::Row& x) {
             ref::Row p(x.size());
             double sum = 0.0;
             for (size_t j = 0; j < x.size(); ++j) sum += p[j] = std::exp(x[j]) / (1.0 + std::exp(-x[j]));
             for (double& value : p) value /= sum;
             return p;
           }),
           .examples = {"sigsoftmax", "sigsoftmax:causal=1"}}};
}

}  // namespace lra
#endif
