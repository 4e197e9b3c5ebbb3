// Softmax with a temperature of the row's own: P = softmax(β x), β >= 1 a polynomial of the entropy H of softmax(x)
// where H > 0.5 (Veličković et al. 2024, "softmax is not enough (for sharp out-of-distribution)", arXiv 2410.01104).
// The source adapts in inference alone (train=0). Over 1,000 and more keys H is often above 5.9, where β = 1: clamp=1
// takes at most H = 4.4, the polynomial's maximum.
// Backward: dx = β dz with softmax's dz; gradient=full adds (Σ dz x) β'(H) (-p⁰_j)(log p⁰_j + H), p⁰ = softmax(x).
// Statistics of a row: 1 / Σ exp(β (x - max)), max, β, β' (0 where β is held), H, log Σ exp(x - max).
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/adaptive_temp.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

#ifndef LRA_ATTENTION_ADAPTIVE_TEMP_ONCE
#define LRA_ATTENTION_ADAPTIVE_TEMP_ONCE
namespace lra {
namespace {

struct Temperature {
  bool adapts, clamps, full_gradient;

  float beta(float entropy) const {
    const float h = argument(entropy);
    if (!adapts || h <= 0.5f) return 1.0f;
    return std::max(1.0f, (((-0.037f * h + 0.481f) * h - 2.3f) * h + 4.917f) * h - 1.791f);
  }
  // dβ/dH where the gradient takes it, else 0.
  float slope(float entropy) const {
    const float h = argument(entropy);
    if (!full_gradient || beta(entropy) <= 1.0f || h < entropy) return 0.0f;
    return ((-0.148f * h + 1.443f) * h - 4.6f) * h + 4.917f;
  }

 private:
  float argument(float entropy) const { return clamps ? std::min(entropy, 4.4f) : entropy; }
};

constexpr int kTemperatureStatistics = 6;

}  // namespace
}  // namespace lra
#endif

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

void adaptive_forward(const Temperature& temperature, const ScoreTile& tile, float* statistics) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += kTemperatureStatistics) {
    float* s = tile.s.row(i);
    const int64_t n = tile.columns(i);
    const RowVector max = max_of(n, s);
    // H = log Z - Σ e (x - max) / Z.
    RowVector sum = hn::Zero(d), weighted = hn::Zero(d);
    for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector z = hn::Sub(access.load(s + j, 0.0f), max);
      const RowVector e = access.only(vector_exp_negative(d, z));
      sum = hn::Add(sum, e);
      weighted = hn::MulAdd(e, z, weighted);
    });
    const float z = sum_of(sum), log_z = std::log(z), entropy = log_z - sum_of(weighted) / z;
    const float beta = temperature.beta(entropy);
    const RowVector b = hn::Set(d, beta);
    RowVector sharper = hn::Zero(d);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = access.only(vector_exp_negative(d, hn::Mul(b, hn::Sub(access.load(s + j, 0.0f), max))));
      sharper = hn::Add(sharper, e);
      access.store(access.keep(e, j), s + j);
    });
    statistics[0] = 1.0f / sum_of(sharper);
    statistics[1] = hn::GetLane(max);
    statistics[2] = beta;
    statistics[3] = temperature.slope(entropy);
    statistics[4] = entropy;
    statistics[5] = log_z;
  }
}

void adaptive_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix gradients) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += kTemperatureStatistics) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    const int64_t n = tile.columns(i);
    const RowVector max = hn::Set(d, statistics[1]), beta = hn::Set(d, statistics[2]);
    const RowVector t = hn::Set(d, statistics[0] * row_dots[i]);
    RowVector along = hn::Zero(d);  // Σ dz (x - max): dz sums to 0
    const auto dz = [&](auto access, RowVector z, RowVector e, int64_t j)
                        HWY_ATTR { return hn::Mul(e, hn::Sub(access.keep(access.load(g + j, 0.0f), j), t)); };
    if (statistics[3] != 0.0f) {
      for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
        const RowVector z = hn::Sub(access.load(s + j, 0.0f), max);
        const RowVector e = access.only(vector_exp_negative(d, hn::Mul(beta, z)));
        along = hn::MulAdd(dz(access, z, e, j), z, along);
      });
    }
    const float factor = -sum_of(along) * statistics[3];
    const RowVector through = hn::Set(d, factor), log_z = hn::Set(d, statistics[5]),
                    entropy = hn::Set(d, statistics[4]);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector z = hn::Sub(access.load(s + j, 0.0f), max);
      const RowVector e = access.only(vector_exp_negative(d, hn::Mul(beta, z)));
      RowVector dx = hn::Mul(beta, dz(access, z, e, j));
      if (factor != 0.0f) {
        const RowVector log_p = hn::Sub(z, log_z);
        dx = hn::MulAdd(hn::Mul(through, vector_exp_negative(d, log_p)), hn::Add(log_p, entropy), dx);
      }
      access.store(access.keep(e, j), s + j);
      access.store(dx, g + j);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(adaptive_forward);
HWY_EXPORT(adaptive_backward);

class AdaptiveTemperature final : public ScoreActivation {
 public:
  explicit AdaptiveTemperature(const AttentionSpec& spec)
      : in_training_(spec.flag("train")), temperature_{true, spec.flag("clamp"), spec.get("gradient") == "full"} {}

  bool whole_rows() const override { return true; }
  int statistics() const override { return kTemperatureStatistics; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    HWY_DYNAMIC_DISPATCH(adaptive_forward)(temperature(tile.training), tile, statistics);
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(adaptive_backward)(tile, statistics, row_dots, g);
  }
  // Softmax's with β, and with u_j = p_j (x_j - Σ p x), v_k = ∂β/∂x_k: ‖A + u vᵀ‖² = ‖A‖² + 2 uᵀ A v + ‖u‖² ‖v‖².
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p,
                                        const float* statistics) const override {
    const int64_t n = tile.keys(i);
    const float* x = tile.s.row(i);
    const double beta = statistics[2], max = statistics[1];
    double square = ratio_jacobian_square(p, n, [&](int64_t k) { return beta * p[k]; });
    if (statistics[3] == 0.0f) return square;
    const auto v = [&](int64_t k) {
      const double log_p = x[k] - max - statistics[5];
      return -statistics[3] * std::exp(log_p) * (log_p + statistics[4]);
    };
    double mean = 0.0, mean_v = 0.0, cross = 0.0, norm_u = 0.0, norm_v = 0.0;
    for (int64_t k = 0; k < n; ++k) mean += p[k] * (x[k] - max), mean_v += p[k] * v(k);
    for (int64_t k = 0; k < n; ++k) {
      const double u = p[k] * (x[k] - max - mean);
      cross += u * beta * p[k] * (v(k) - mean_v);
      norm_u += u * u;
      norm_v += v(k) * v(k);
    }
    return square + 2.0 * cross + norm_u * norm_v;
  }

 private:
  Temperature temperature(bool training) const {
    Temperature now = temperature_;
    now.adapts = !training || in_training_;
    return now;
  }

  bool in_training_;
  Temperature temperature_;
};

}  // namespace

std::vector<AttentionFamily> adaptive_temp_families() {
  using Kind = AttentionOption::Kind;
  return {{.name = "adaptive-temp",
           .options = {{"train", Kind::kFlag, "0", {}, "adapt in training too"},
                       {"gradient", Kind::kChoice, "stop", {"stop", "full"}, "hold β in the backward pass, or not"},
                       {"clamp", Kind::kFlag, "0", {}, "entropies above 4.4 count as 4.4"}},
           .idea = "softmax(β x), β >= 1 a polynomial of the row's entropy",
           .source = "arXiv 2410.01104",
           .kind = "row-wise",
           .cost = "10f + 2E",
           .ours = "train=1, clamp=1",
           .causal = true,
           .plain_scores = [](const AttentionSpec& spec) { return spec.get("gradient") == "full"; },
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 return make_tiled(spec, shape, std::make_unique<AdaptiveTemperature>(spec));
               },
           .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
             const AttentionSpec& spec = row.problem.spec;
             ref::Row p = ref::softmax(x);
             if (row.problem.training && !spec.flag("train")) return p;
             double h = 0.0;
             for (const double value : p) h -= value * std::log(value + 1e-9);
             if (spec.flag("clamp")) h = std::min(h, 4.4);
             const double b = -0.037 * std::pow(h, 4) + 0.481 * std::pow(h, 3) - 2.3 * h * h + 4.917 * h - 1.791;
             ref::Row z = x;
             for (double& value : z) value *= h > 0.5 ? std::max(b, 1.0) : 1.0;
             return ref::softmax(z);
           }),
           .examples = {"adaptive-temp", "adaptive-temp:train=1,gradient=full",
                        "adaptive-temp:train=1,gradient=full,clamp=1", "adaptive-temp:causal=1"}}};
}

}  // namespace lra
#endif
