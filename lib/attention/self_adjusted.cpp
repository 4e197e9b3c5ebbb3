// Self-adjust softmax (arXiv 2502.18277), u = softmax(x). `sa-softmax`: P = x ⊙ u, or (x - min x) ⊙ u (form=minus-min);
// `sa-softmax-norm`: P = (x - a) / (b - a) ⊙ u with a = min(min x, 0), b = max(max x, 0) (form=free: without the
// zeros), b - a at least 1e-6. The gradient flows through minimum and maximum, to their first place. Backward, y the
// factor of u: dx_j = u_j (g_j y_j - Σ P g) + dy_j ∂y_j/∂x_j. Statistics of a row: 1 / Σ exp(x - max), max, and of
// forms that know the row's ends a and b.
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/self_adjusted.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// P = x ⊙ u, tile after tile.
void self_adjusted_forward(const ScoreTile& tile, float* statistics, float* earlier) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    const int64_t n = tile.columns(i);
    const RowVector before = hn::Set(d, statistics[1]);
    const RowVector max = max_of(n, s, before);
    RowVector sum = hn::Zero(d);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector x = access.load(s + j, 0.0f);
      const RowVector e = access.only(vector_exp_negative(d, hn::Sub(x, max)));
      sum = hn::Add(sum, e);
      access.store(access.keep(hn::Mul(x, e), j), s + j);
    });
    earlier[i] = hn::GetLane(vector_exp_negative(d, hn::Sub(before, max)));
    statistics[0] = statistics[0] * earlier[i] + sum_of(sum);
    statistics[1] = hn::GetLane(max);
  }
}

// dx = u (g (1 + x) - t).
void self_adjusted_backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix gradients) {
  const RowTag d;
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 2) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    const RowVector max = hn::Set(d, statistics[1]), t = hn::Set(d, statistics[0] * row_dots[i]);
    for_each_vector(tile.row_kept(i), tile.columns(i), [&](auto access, int64_t j) HWY_ATTR {
      const RowVector x = access.load(s + j, 0.0f), e = vector_exp_negative(d, hn::Sub(x, max));
      const RowVector gradient = access.keep(access.load(g + j, 0.0f), j);
      access.store(access.keep(hn::Mul(x, e), j), s + j);
      access.store(hn::Mul(e, hn::Sub(hn::MulAdd(gradient, x, gradient), t)), g + j);
    });
  }
}

// The forms that know the row's ends: P = (x - a) / w ⊙ u, w = b - a or 1.
void row_ends(const float* s, int64_t n, float* min, float* max) { ends_of(n, s, min, max); }

// s: x -> (x - a) e^(x - max), 0 where dropped. Returns Σ e^(x - max).
float shifted_forward(const uint8_t* kept, int64_t n, float a, float max, float* s) {
  const RowTag d;
  const RowVector low = hn::Set(d, a), high = hn::Set(d, max);
  RowVector sum = hn::Zero(d);
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector x = access.load(s + j, 0.0f);
    const RowVector e = access.only(vector_exp_negative(d, hn::Sub(x, high)));
    sum = hn::Add(sum, e);
    access.store(access.keep(hn::Mul(hn::Sub(x, low), e), j), s + j);
  });
  return sum_of(sum);
}

// With e = e^(x - max), y = x - a and g of the driver (the row's factor times ∂L/∂P): s -> y e, g -> dx but for the
// ends, e (g (1 + y) - t). Returns Σ g e (plain) and Σ g e y (weighted).
void shifted_backward(const uint8_t* kept, int64_t n, float a, float max, float offset, float* s, float* g,
                      float* plain, float* weighted) {
  const RowTag d;
  const RowVector low = hn::Set(d, a), high = hn::Set(d, max), t = hn::Set(d, offset);
  RowVector sum = hn::Zero(d), sum_y = hn::Zero(d);
  for_each_vector(kept, n, [&](auto access, int64_t j) HWY_ATTR {
    const RowVector x = access.load(s + j, 0.0f), y = hn::Sub(x, low);
    const RowVector e = access.only(vector_exp_negative(d, hn::Sub(x, high)));
    const RowVector gradient = access.keep(access.load(g + j, 0.0f), j), ge = hn::Mul(gradient, e);
    sum = hn::Add(sum, ge);
    sum_y = hn::MulAdd(ge, y, sum_y);
    access.store(access.keep(hn::Mul(y, e), j), s + j);
    access.store(hn::Mul(e, hn::Sub(hn::MulAdd(gradient, y, gradient), t)), g + j);
  });
  *plain = sum_of(sum);
  *weighted = sum_of(sum_y);
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(self_adjusted_forward);
HWY_EXPORT(self_adjusted_backward);
HWY_EXPORT(row_ends);
HWY_EXPORT(shifted_forward);
HWY_EXPORT(shifted_backward);

class SelfAdjusted final : public OnlineSoftmax {
 public:
  void forward(const ScoreTile& tile, float* statistics, float* earlier) const override {
    HWY_DYNAMIC_DISPATCH(self_adjusted_forward)(tile, statistics, earlier);
  }
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix g,
                const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(self_adjusted_backward)(tile, statistics, row_dots, g);
  }
  // With y = x u and w = u + y: ∂p_j/∂x_k = [j = k] w_k - y_j u_k, Σw² - 2 Σ w y u + Σu² Σy².
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p,
                                        const float* statistics) const override {
    const float* x = tile.s.row(i);
    double w_square = 0.0, cross = 0.0, u_square = 0.0, y_square = 0.0;
    for (int64_t k = 0; k < tile.keys(i); ++k) {
      const double u = std::exp(static_cast<double>(x[k]) - statistics[1]) * statistics[0], y = p[k];
      w_square += (u + y) * (u + y);
      cross += (u + y) * y * u;
      u_square += u * u;
      y_square += y * y;
    }
    return w_square - 2.0 * cross + u_square * y_square;
  }
};

enum class Ends { kMinusMin, kZero, kFree };

class SelfAdjustedToEnds final : public ScoreActivation {
 public:
  explicit SelfAdjustedToEnds(Ends ends) : ends_(ends) {}

  bool whole_rows() const override { return true; }
  int statistics() const override { return kStatistics; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i, statistics += kStatistics) {
      float *s = tile.s.row(i), min, max;
      HWY_DYNAMIC_DISPATCH(row_ends)(s, tile.columns(i), &min, &max);
      const float a = ends_ == Ends::kZero ? std::min(min, 0.0f) : min;
      const float b = ends_ == Ends::kZero ? std::max(max, 0.0f) : max;
      const float sum = HWY_DYNAMIC_DISPATCH(shifted_forward)(tile.row_kept(i), tile.columns(i), a, max, s);
      statistics[kFactor] = 1.0f / (sum * width(a, b));
      statistics[kMax] = max;
      statistics[kLow] = a;
      statistics[kHigh] = b;
      statistics[kMin] = min;
    }
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float* statistics, const float* row_dots, Matrix gradients,
                const RowGradients&) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i, statistics += kStatistics) {
      float *s = tile.s.row(i), *g = gradients.row(i);
      const int64_t n = tile.columns(i);
      const float a = statistics[kLow], b = statistics[kHigh], w = width(a, b);
      const int64_t first = std::find(s, s + n, statistics[kMin]) - s, last = std::find(s, s + n, statistics[kMax]) - s;
      // P = y e factor, of which the softmax is e factor w: its g is that of the driver's over w.
      float plain, weighted;
      HWY_DYNAMIC_DISPATCH(shifted_backward)
      (tile.row_kept(i), n, a, statistics[kMax], w * statistics[kFactor] * row_dots[i], s, g, &plain, &weighted);
      const bool by_width = ends_ != Ends::kMinusMin && b - a >= kNarrowest;
      const float d_width = by_width ? -weighted / w : 0.0f;
      if (ends_ != Ends::kZero || statistics[kMin] < 0.0f) g[first] -= plain + d_width;
      if (by_width && (ends_ == Ends::kFree || statistics[kMax] > 0.0f)) g[last] += d_width;
    }
  }
  // Column k: e_k (P_k + u_k / w) - P u_k, and where x_k is an end what it does as such.
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p,
                                        const float* statistics) const override {
    const float* x = tile.s.row(i);
    const int64_t n = tile.keys(i);
    const double a = statistics[kLow], w = width(statistics[kLow], statistics[kHigh]);
    const auto u = [&](int64_t k) {
      return std::exp(static_cast<double>(x[k]) - statistics[kMax]) * statistics[kFactor] * w;
    };
    double squares = 0.0, sum = 0.0;
    for (int64_t k = 0; k < n; ++k) squares += static_cast<double>(p[k]) * p[k];
    const int64_t first = std::find(x, x + n, statistics[kMin]) - x, last = std::find(x, x + n, statistics[kMax]) - x;
    const bool by_width = ends_ != Ends::kMinusMin && statistics[kHigh] - statistics[kLow] >= kNarrowest;
    const bool low_moves = ends_ != Ends::kZero || statistics[kMin] < 0.0f;
    const bool high_moves = by_width && (ends_ == Ends::kFree || statistics[kMax] > 0.0f);
    for (int64_t k = 0; k < n; ++k) {
      const double own = p[k] + u(k) / w;
      if ((k != first || !low_moves) && (k != last || !high_moves)) {
        sum += own * own - 2.0 * own * p[k] * u(k) + squares * u(k) * u(k);
        continue;
      }
      for (int64_t j = 0; j < n; ++j) {
        double slope = (j == k ? own : 0.0) - p[j] * u(k);
        if (k == first && low_moves) slope -= u(j) / w * (1.0 - (by_width ? (x[j] - a) / w : 0.0));
        if (k == last && high_moves) slope -= p[j] / w;
        sum += slope * slope;
      }
    }
    return sum;
  }

 private:
  static constexpr float kNarrowest = 1e-6f;
  enum { kFactor, kMax, kLow, kHigh, kMin, kStatistics };

  float width(float a, float b) const { return ends_ == Ends::kMinusMin ? 1.0f : std::max(b - a, kNarrowest); }

  Ends ends_;
};

ref::Row adjusted(const ref::Row& x, double a, double w) {
  ref::Row p = ref::softmax(x);
  for (size_t j = 0; j < x.size(); ++j) p[j] *= (x[j] - a) / w;
  return p;
}

}  // namespace

std::vector<AttentionFamily> self_adjusted_families() {
  using Kind = AttentionOption::Kind;
  return {
      {.name = "sa-softmax",
       .options = {{"form", Kind::kChoice, "plain", {"plain", "minus-min"}, "factor x or x − min x"}},
       .idea = "x ⊙ softmax(x)",
       .source = "arXiv 2502.18277",
       .kind = "row-wise",
       .cost = "5f + 1E",
       .causal = true,
       .make = [](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
         if (spec.get("form") == "plain") return make_tiled(spec, shape, std::make_unique<SelfAdjusted>());
         return make_tiled(spec, shape, std::make_unique<SelfAdjustedToEnds>(Ends::kMinusMin));
       },
       .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
         const bool plain = row.problem.spec.get("form") == "plain";
         return adjusted(x, plain ? 0.0 : *std::min_element(x.begin(), x.end()), 1.0);
       }),
       .examples = {"sa-softmax", "sa-softmax:form=minus-min", "sa-softmax:causal=1"}},
      {.name = "sa-softmax-norm",
       .options = {{"form", Kind::kChoice, "zero", {"zero", "free"}, "ends that reach 0 at least, or the row's own"}},
       .idea = "(x − a)/(b − a) ⊙ softmax(x), a and b the row's ends",
       .source = "arXiv 2502.18277",
       .kind = "row-wise",
       .cost = "9f + 1E",
       .ours = "a and b carry gradient; b − a at least 1e-6",
       .causal = true,
       .make =
           [](const AttentionSpec& spec, const AttentionShape& shape) {
             const Ends ends = spec.get("form") == "free" ? Ends::kFree : Ends::kZero;
             return make_tiled(spec, shape, std::make_unique<SelfAdjustedToEnds>(ends));
           },
       .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
         double a = *std::min_element(x.begin(), x.end()), b = *std::max_element(x.begin(), x.end());
         if (row.problem.spec.get("form") == "zero") a = std::min(a, 0.0), b = std::max(b, 0.0);
         return adjusted(x, a, std::max(b - a, 1e-6));
       }),
       .examples = {"sa-softmax-norm", "sa-softmax-norm:form=free", "sa-softmax-norm:causal=1"}}};
}

}  // namespace lra
#endif
