// Softpick: P_j = relu(e^x_j - 1) / (Σ |e^x - 1| + ε) (Zuhri et al. 2025, "Softpick: No Attention Sink, No Massive
// Activations with Rectified Softmax", arXiv 2504.20966). Stable form of our own: all terms times e^-m, m = max(0, max
// x); ε = 1e-8 is added to the scaled sum. Rows of scores that are all <= 0 give exactly 0. Backward: dx_j = e^x_j / D
// (1[x_j > 0] g_j - sgn(x_j) t), D the denominator, t = Σ p g. Statistics of a row: 1 / D (while gathered: the sum), m.
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/score_activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/softpick.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// e^-m (e^x - 1). expm1 alone would overflow, the difference of exponentials alone would lose small scores.
HWY_INLINE RowVector scaled_expm1(RowVector x, RowVector m, RowVector exp_minus_m) {
  const RowTag d;
  const RowVector one = hn::Set(d, 1.0f);
  const RowVector large = hn::Sub(vector_exp_negative(d, hn::Sub(x, m)), exp_minus_m);
  const RowVector small = hn::Mul(exp_minus_m, hn::Expm1(d, hn::Min(x, one)));
  return hn::IfThenElse(hn::Gt(x, one), large, small);
}

void softpick_forward(const ScoreTile& tile, float* statistics, float* earlier) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    const int64_t n = tile.columns(i);
    const RowVector before = hn::Set(d, statistics[1]);
    const RowVector m = max_of(n, s, before), exp_minus_m = vector_exp_negative(d, hn::Neg(m));
    RowVector sum = hn::Zero(d);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = access.only(scaled_expm1(access.load(s + j, 0.0f), m, exp_minus_m));
      sum = hn::Add(sum, hn::Abs(e));
      access.store(access.keep(hn::Max(e, hn::Zero(d)), j), s + j);
    });
    earlier[i] = hn::GetLane(vector_exp_negative(d, hn::Sub(before, m)));
    statistics[0] = statistics[0] * earlier[i] + sum_of(sum);
    statistics[1] = hn::GetLane(m);
  }
}

void softpick_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix gradients) {
  const RowTag d;
  const RowVector zero = hn::Zero(d);
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    const RowVector m = hn::Set(d, statistics[1]), exp_minus_m = vector_exp_negative(d, hn::Neg(m));
    const RowVector t = hn::Set(d, statistics[0] * row_dots[i]);
    for_each_vector(tile.row_kept(i), tile.columns(i), [&](auto access, int64_t j) HWY_ATTR {
      const RowVector x = access.load(s + j, 0.0f), e = scaled_expm1(x, m, exp_minus_m);
      const RowVector gradient = access.keep(access.load(g + j, 0.0f), j);
      const RowVector above = hn::IfThenElseZero(hn::Gt(x, zero), hn::Sub(gradient, t));
      const RowVector below = hn::IfThenElseZero(hn::Lt(x, zero), t);
      access.store(access.keep(hn::Max(e, zero), j), s + j);
      access.store(hn::Mul(vector_exp_negative(d, hn::Sub(x, m)), hn::Add(above, below)), g + j);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(softpick_forward);
HWY_EXPORT(softpick_backward);

class Softpick final : public ScoreActivation {
 public:
  int statistics() const override { return 2; }
  void forward_begin(const ScoreTile& rows, float* statistics) const override {
    std::fill_n(statistics, 2 * rows.s.rows, 0.0f);
  }
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    HWY_DYNAMIC_DISPATCH(softpick_forward)(tile, statistics, earlier);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i) statistics[2 * i] = 1.0f / (statistics[2 * i] + 1e-8f);
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(softpick_backward)(tile, statistics, row_dots, g);
  }
  // Σ (e^x / D)² (1[x > 0] (1 - 2p) + Σ p²), 0 where x = 0.
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p,
                                        const float* statistics) const override {
    const float* x = tile.s.row(i);
    double squares = 0.0, sum = 0.0;
    for (int64_t k = 0; k < tile.keys(i); ++k) squares += static_cast<double>(p[k]) * p[k];
    for (int64_t k = 0; k < tile.keys(i); ++k) {
      const double slope = std::exp(static_cast<double>(x[k]) - statistics[1]) * statistics[0];
      if (x[k] != 0.0f) sum += slope * slope * ((x[k] > 0.0f ? 1.0 - 2.0 * p[k] : 0.0) + squares);
    }
    return sum;
  }
};

}  // namespace

std::vector<AttentionFamily> softpick_families() {
  return {{.name = "softpick",
           .idea = "relu(e^x − 1) / (Σ |e^x − 1| + 1e-8)",
           .source = "arXiv 2504.20966",
           .kind = "row-wise",
           .cost = "7f + 1E",
           .ours = "the stable form: everything times e^−max(0, max x), ε on the scaled sum",
           .causal = true,
           .make = [](const AttentionSpec& spec,
                      const AttentionShape& shape) { return make_tiled(spec, shape, std::make_unique<Softpick>()); },
           .reference = ref::rows([](const ref::RowPlace&, const ref::Row& x) {
             const double m = std::max(0.0, *std::max_element(x.begin(), x.end()));
             ref::Row p(x.size());
             double sum = 0.0;
             for (size_t j = 0; j < x.size(); ++j) {
               const double e = std::exp(-m) * std::expm1(x[j]);
               sum += std::abs(e);
               p[j] = std::max(e, 0.0);
             }
             for (double& value : p) value /= sum + 1e-8;
             return p;
           }),
           .examples = {"softpick", "softpick:causal=1"}}};
}

}  // namespace lra
#endif
