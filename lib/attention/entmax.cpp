// Projections on the simplex: P_j = relu((α - 1) x_j - τ)^(1 / (α - 1)), τ such that the row sums to 1. `sparsemax` is
// α = 2 (Martins & Astudillo 2016, arXiv 1602.02068), `entmax15` α = 1.5, `entmax` any α above 1 (Peters et al. 2019,
// arXiv 1905.05702), or learnt a head, α = 1 + σ(a) (Correia et al. 2019, arXiv 1909.00015). τ: only keys with y_j >
// max y - 1, y = (α - 1) x, can weigh anything; they are gathered once. Σ relu(y - τ)^r - 1 is convex in τ for r = 1 /
// (α - 1) >= 1, so that Newton's method from the left, τ = max y - 1, rises to the root without overshooting; for α > 2
// the root is found by bisection. Backward on the support, u = p^(2 - α): dx = u (g - Σ u g / Σ u); dα as the
// specification of `entmax` has it. Statistics of a row: 1, τ.
#include "lib/attention/entmax.h"

#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/score_activation.h"
#include "lib/util/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/entmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// p = gap^r of gap = y - τ where it is above 0, else 0, and u = p^(2 - α) = gap^(r - 1).
// r = 1: sparsemax, r = 2: entmax15.
struct PowerOne {
  HWY_INLINE RowVector weight(RowVector gap) const { return hn::Max(gap, hn::Zero(RowTag())); }
  HWY_INLINE RowVector lower(RowVector gap) const {
    return hn::IfThenElseZero(hn::Gt(gap, hn::Zero(RowTag())), hn::Set(RowTag(), 1.0f));
  }
  float r() const { return 1.0f; }
};
struct PowerTwo {
  HWY_INLINE RowVector weight(RowVector gap) const {
    const RowVector on = hn::Max(gap, hn::Zero(RowTag()));
    return hn::Mul(on, on);
  }
  HWY_INLINE RowVector lower(RowVector gap) const { return hn::Max(gap, hn::Zero(RowTag())); }
  float r() const { return 2.0f; }
};
struct PowerAny {
  float power;
  HWY_INLINE RowVector to_the(RowVector gap, float exponent) const {
    const RowTag d;
    const auto on = hn::Gt(gap, hn::Zero(d));
    const RowVector log = hn::Log(d, hn::IfThenElse(on, gap, hn::Set(d, 1.0f)));
    return hn::IfThenElseZero(on, vector_exp(d, hn::Mul(hn::Set(d, exponent), log)));
  }
  HWY_INLINE RowVector weight(RowVector gap) const { return to_the(gap, power); }
  HWY_INLINE RowVector lower(RowVector gap) const { return to_the(gap, power - 1.0f); }
  float r() const { return power; }
};

// Σ p and Σ u of some y at τ.
template <class Power>
HWY_INLINE void sums(const Power& power, const float* y, int64_t n, float tau, float* weights, float* lowers) {
  const RowTag d;
  const RowVector t = hn::Set(d, tau);
  RowVector sum = hn::Zero(d), sum_lower = hn::Zero(d);
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector gap = hn::Sub(access.load(y + j, hwy::LowestValue<float>()), t);
    sum = hn::Add(sum, power.weight(gap));
    sum_lower = hn::Add(sum_lower, power.lower(gap));
  });
  *weights = sum_of(sum);
  *lowers = sum_of(sum_lower);
}

template <class Power>
float threshold(const Power& power, const float* y, int64_t n, float top) {
  float tau = top - 1.0f, weights, lowers;
  if (power.r() < 1.0f) {
    float low = tau, high = top;
    for (int step = 0; step < 40 && low < high; ++step) {
      tau = 0.5f * (low + high);
      sums(power, y, n, tau, &weights, &lowers);
      (weights >= 1.0f ? low : high) = tau;
    }
    return low;
  }
  for (int step = 0; step < 60; ++step) {
    sums(power, y, n, tau, &weights, &lowers);
    if (!(weights > 1.0f)) break;
    const float next = tau + (weights - 1.0f) / (power.r() * lowers);
    if (!(next > tau)) break;
    tau = next;
  }
  return tau;
}

// candidates (n and a vector): scratch.
template <class Power>
void project_row(const Power& power, float scale, const uint8_t* kept, int64_t n, float* s, float* candidates,
                 float* statistics) {
  const RowTag d;
  const RowVector factor = hn::Set(d, scale);
  RowVector top = hn::Set(d, hwy::LowestValue<float>());
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector y = hn::Mul(factor, access.load(s + j, 0.0f));
    top = hn::Max(top, access.only(y, hwy::LowestValue<float>()));
    access.store(y, s + j);
  });
  const float max = hn::GetLane(hn::MaxOfLanes(d, top));
  const RowVector least = hn::Set(d, max - 1.0f);
  int64_t count = 0;
  for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector y = access.load(s + j, hwy::LowestValue<float>());
    count += static_cast<int64_t>(hn::CompressBlendedStore(y, hn::Gt(y, least), d, candidates + count));
  });
  const float tau = threshold(power, candidates, count, max);
  statistics[0] = 1.0f;
  statistics[1] = tau;
  const RowVector t = hn::Set(d, tau);
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    access.store(access.keep(power.weight(hn::Sub(access.load(s + j, 0.0f), t)), j), s + j);
  });
}

// Returns dL/dα.
template <class Power>
float pull_row_back(const Power& power, float scale, bool for_alpha, const uint8_t* kept, int64_t n, float tau,
                    float* s, float* g) {
  const RowTag d;
  const RowVector factor = hn::Set(d, scale), t = hn::Set(d, tau), zero = hn::Zero(d);
  RowVector sum_u = zero, sum_ug = zero, sum_entropy = zero;
  const auto log_of = [&](RowVector p)
                          HWY_ATTR { return hn::Log(d, hn::IfThenElse(hn::Gt(p, zero), p, hn::Set(d, 1.0f))); };
  const auto gap_at = [&](auto access, int64_t j) HWY_ATTR {
    return access.only(hn::Sub(hn::Mul(factor, access.load(s + j, 0.0f)), t), -1.0f);
  };
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector gap = gap_at(access, j), u = power.lower(gap);
    const RowVector gradient = access.keep(access.load(g + j, 0.0f), j);
    sum_u = hn::Add(sum_u, u);
    sum_ug = hn::MulAdd(u, gradient, sum_ug);
    if (for_alpha) {
      const RowVector p = power.weight(gap);
      sum_entropy = hn::MulAdd(p, log_of(p), sum_entropy);
    }
  });
  const float total = sum_of(sum_u), mean = sum_of(sum_ug) / total;
  const RowVector m = hn::Set(d, mean);
  float d_alpha = 0.0f;
  if (for_alpha) {
    // Σ g [(p - ũ) / (α - 1)² - (p log p - ũ Σ p log p) / (α - 1)], ũ = u / Σu.
    const RowVector share = hn::Set(d, 1.0f / total), inverse = hn::Set(d, 1.0f / scale);
    const RowVector entropy = hn::Set(d, sum_of(sum_entropy));
    RowVector sum = zero;
    for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector gap = gap_at(access, j), p = power.weight(gap), u = hn::Mul(power.lower(gap), share);
      const RowVector gradient = access.keep(access.load(g + j, 0.0f), j);
      const RowVector shift = hn::Mul(hn::Sub(p, u), inverse);
      const RowVector bend = hn::NegMulAdd(u, entropy, hn::Mul(p, log_of(p)));
      sum = hn::MulAdd(gradient, hn::Mul(hn::Sub(shift, bend), inverse), sum);
    });
    d_alpha = sum_of(sum);
  }
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector gap = gap_at(access, j);
    const RowVector gradient = access.keep(access.load(g + j, 0.0f), j);
    access.store(hn::Mul(power.lower(gap), hn::Sub(gradient, m)), g + j);
    access.store(access.keep(power.weight(gap), j), s + j);
  });
  return d_alpha;
}

// Calls body(power) with the struct for α.
template <class Body>
HWY_INLINE auto with_power(float alpha, const Body& body) {
  if (alpha == 2.0f) return body(PowerOne());
  if (alpha == 1.5f) return body(PowerTwo());
  return body(PowerAny{1.0f / (alpha - 1.0f)});
}

void entmax_forward(float alpha, const uint8_t* kept, int64_t n, float* s, float* candidates, float* statistics) {
  with_power(alpha, [&](auto power) HWY_ATTR {
    project_row(power, alpha - 1.0f, kept, n, s, candidates, statistics);
    return 0;
  });
}

float entmax_backward(float alpha, bool for_alpha, const uint8_t* kept, int64_t n, const float* statistics, float* s,
                      float* g) {
  return with_power(alpha, [&](auto power) HWY_ATTR {
    return pull_row_back(power, alpha - 1.0f, for_alpha, kept, n, statistics[1], s, g);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(entmax_forward);
HWY_EXPORT(entmax_backward);

void entmax_row(float alpha, const uint8_t* kept, int64_t n, float* s, float* scratch, float* statistics) {
  HWY_DYNAMIC_DISPATCH(entmax_forward)(alpha, kept, n, s, scratch, statistics);
}

float entmax_row_backward(float alpha, bool for_alpha, const uint8_t* kept, int64_t n, const float* statistics,
                          float* s, float* g) {
  return HWY_DYNAMIC_DISPATCH(entmax_backward)(alpha, for_alpha, kept, n, statistics, s, g);
}

namespace {

class Entmax final : public ScoreActivation {
 public:
  Entmax(double alpha, bool learnable) : alpha_(static_cast<float>(alpha)), learnable_(learnable) {}

  bool whole_rows() const override { return true; }
  int statistics() const override { return 2; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    std::vector<float> candidates(tile.s.cols + kEntmaxSlack);
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      entmax_row(alpha(tile), tile.row_kept(i), tile.columns(i), tile.s.row(i), candidates.data(), statistics + 2 * i);
    }
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float* statistics, const float*, Matrix g,
                const RowGradients& gradients) const override {
    float d_alpha = 0.0f;
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      d_alpha += entmax_row_backward(alpha(tile), learnable_, tile.row_kept(i), tile.columns(i), statistics + 2 * i,
                                     tile.s.row(i), g.row(i));
    }
    if (!learnable_) return;
    const float above = alpha(tile) - 1.0f;  // σ(a)
    gradients.parameters[0][tile.head] += d_alpha * above * (1.0f - above);
  }
  // With σ_k = Σ u^k: σ₂ - 2 σ₃ / σ₁ + σ₂² / σ₁².
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    double sums[4] = {};
    for (int64_t k = 0; k < tile.keys(i); ++k) {
      const double u = p[k] > 0.0f ? std::pow(static_cast<double>(p[k]), 2.0 - alpha(tile)) : 0.0;
      sums[1] += u, sums[2] += u * u, sums[3] += u * u * u;
    }
    return sums[2] - 2.0 * sums[3] / sums[1] + sums[2] * sums[2] / (sums[1] * sums[1]);
  }

 private:
  float alpha(const ScoreTile& tile) const {
    return learnable_ ? 1.0f + 1.0f / (1.0f + std::exp(-tile.parameters[0][tile.head])) : alpha_;
  }

  float alpha_;
  bool learnable_;
};

}  // namespace

namespace ref {

Row entmax(const Row& x, double alpha) {
  const double r = 1.0 / (alpha - 1.0), top = (alpha - 1.0) * *std::max_element(x.begin(), x.end());
  Row p(x.size());
  const auto fill = [&](double tau) {
    double sum = 0.0;
    for (size_t j = 0; j < x.size(); ++j) {
      const double gap = (alpha - 1.0) * x[j] - tau;
      sum += p[j] = gap > 0.0 ? std::pow(gap, r) : 0.0;
    }
    return sum;
  };
  double low = top - 1.0, high = top;
  for (int step = 0; step < 100; ++step) {
    const double middle = 0.5 * (low + high);
    (fill(middle) >= 1.0 ? low : high) = middle;
  }
  const double sum = fill(low);
  for (double& value : p) value /= sum;
  return p;
}

}  // namespace ref

std::vector<AttentionFamily> entmax_families() {
  using Kind = AttentionOption::Kind;
  AttentionFamily sparsemax = {
      .name = "sparsemax",
      .idea = "Euclidean projection on the simplex: relu(x − τ)",
      .source = "arXiv 1602.02068",
      .kind = "row-wise",
      .cost = "Newton steps",
      .causal = true,
      .make = [](const AttentionSpec& spec,
                 const AttentionShape& shape) { return make_tiled(spec, shape, std::make_unique<Entmax>(2.0, false)); },
      .reference = ref::rows([](const ref::RowPlace&, const ref::Row& x) { return ref::entmax(x, 2.0); }),
      .examples = {"sparsemax", "sparsemax:causal=1"}};
  AttentionFamily entmax15 = {
      .name = "entmax15",
      .idea = "α = 1.5: relu(x/2 − τ)²",
      .source = "arXiv 1905.05702",
      .kind = "row-wise",
      .cost = "Newton steps",
      .causal = true,
      .make = [](const AttentionSpec& spec,
                 const AttentionShape& shape) { return make_tiled(spec, shape, std::make_unique<Entmax>(1.5, false)); },
      .reference = ref::rows([](const ref::RowPlace&, const ref::Row& x) { return ref::entmax(x, 1.5); }),
      .examples = {"entmax15", "entmax15:causal=1"}};
  AttentionFamily entmax = {
      .name = "entmax",
      .options = {{"alpha", Kind::kReal, "1.5", {}, "α above 1; below 2 if learnable"},
                  {"learnable", Kind::kFlag, "0", {}, "learn α = 1 + σ(a) a head, from the option's value"}},
      .idea = "relu((α − 1) x − τ)^(1/(α − 1))",
      .source = "arXiv 1905.05702, 1909.00015",
      .kind = "row-wise",
      .cost = "Newton steps of powers; bisection for α > 2",
      .causal = true,
      .validate =
          [](const AttentionSpec& spec) {
            const double alpha = spec.real("alpha");
            if (alpha <= 1.0 || (spec.flag("learnable") && alpha >= 2.0)) {
              throw UsageError("attention entmax: alpha={} must be above 1, and below 2 if learnable=1",
                               spec.get("alpha"));
            }
          },
      .make =
          [](const AttentionSpec& spec, const AttentionShape& shape) {
            const double alpha = spec.real("alpha");
            std::vector<KernelParameter> parameters;
            if (spec.flag("learnable")) {
              const double logit = std::log((alpha - 1.0) / (2.0 - alpha));
              parameters.push_back({"alpha_logit", {shape.heads}, start_constant(logit)});
            }
            return make_tiled(spec, shape, std::make_unique<Entmax>(alpha, spec.flag("learnable")),
                              std::move(parameters));
          },
      .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
        const AttentionSpec& spec = row.problem.spec;
        return ref::entmax(
            x, spec.flag("learnable") ? 1.0 + 1.0 / (1.0 + std::exp(-row.parameter(0))) : spec.real("alpha"));
      }),
      .examples = {"entmax", "entmax:alpha=1.3", "entmax:learnable=1", "entmax:alpha=2.5", "entmax:causal=1"}};
  return {sparsemax, entmax15, entmax};
}

}  // namespace lra
#endif
