// Softmax with gradient decay: P_j = e^x_j / (Σ_{i≠j} e^x_i + β e^x_j) = u_j / (1 - (1 - β) u_j), u = softmax(x). The
// source puts β into the classification loss (arXiv 2210.17145); as attention it is our definition. β = 1 is softmax;
// P <= 1 / β. Backward: softmax's on u with g_j / (1 - (1 - β) u_j)². Statistics of a row: 1, max, 1 / Σ exp(x - max).
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/online_softmax.h"
#include "lib/util/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/gd_softmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

// rest = 1 - β.
void gd_softmax_forward(float rest, const ScoreTile& tile, float* statistics) {
  const RowTag d;
  const RowVector one = hn::Set(d, 1.0f), r = hn::Set(d, rest);
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 3) {
    float* s = tile.s.row(i);
    const int64_t n = tile.columns(i);
    const RowVector max = max_of(n, s);
    RowVector sum = hn::Zero(d);
    for_each_vector(n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector e = access.only(vector_exp_negative(d, hn::Sub(access.load(s + j, 0.0f), max)));
      sum = hn::Add(sum, e);
      access.store(e, s + j);
    });
    statistics[0] = 1.0f;
    statistics[1] = hn::GetLane(max);
    statistics[2] = 1.0f / sum_of(sum);
    const RowVector scale = hn::Set(d, statistics[2]);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector u = hn::Mul(access.load(s + j, 0.0f), scale);
      access.store(access.keep(hn::Div(u, hn::NegMulAdd(r, u, one)), j), s + j);
    });
  }
}

void gd_softmax_backward(float rest, const ScoreTile& tile, const float* statistics, Matrix gradients) {
  const RowTag d;
  const RowVector one = hn::Set(d, 1.0f), r = hn::Set(d, rest);
  for (int64_t i = 0; i < tile.s.rows; ++i, statistics += 3) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    const int64_t n = tile.columns(i);
    const RowVector max = hn::Set(d, statistics[1]), scale = hn::Set(d, statistics[2]);
    RowVector sum = hn::Zero(d);
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector u = access.only(hn::Mul(vector_exp_negative(d, hn::Sub(access.load(s + j, 0.0f), max)), scale));
      const RowVector w = hn::Div(one, hn::NegMulAdd(r, u, one));
      const RowVector du = hn::Mul(access.keep(access.load(g + j, 0.0f), j), hn::Mul(w, w));
      sum = hn::MulAdd(u, du, sum);
      access.store(u, s + j);
      access.store(du, g + j);
    });
    const RowVector t = hn::Set(d, sum_of(sum));
    for_each_vector(tile.row_kept(i), n, [&](auto access, int64_t j) HWY_ATTR {
      const RowVector u = access.load(s + j, 0.0f);
      access.store(hn::Mul(u, hn::Sub(access.load(g + j, 0.0f), t)), g + j);
      access.store(access.keep(hn::Div(u, hn::NegMulAdd(r, u, one)), j), s + j);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(gd_softmax_forward);
HWY_EXPORT(gd_softmax_backward);

class GdSoftmax final : public ScoreActivation {
 public:
  explicit GdSoftmax(double beta) : rest_(1.0 - beta) {}

  bool whole_rows() const override { return true; }
  int statistics() const override { return 3; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    HWY_DYNAMIC_DISPATCH(gd_softmax_forward)(static_cast<float>(rest_), tile, statistics);
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float* statistics, const float*, Matrix g,
                const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(gd_softmax_backward)(static_cast<float>(rest_), tile, statistics, g);
  }
  // ∂p_j/∂x_k = w_j u_j ([j = k] - u_k), w_j = (1 - (1 - β) u_j)^-2.
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p, const float*) const override {
    double squares = 0.0, sum = 0.0;
    const auto u = [&](int64_t k) { return p[k] / (1.0 + rest_ * p[k]); };
    const auto a = [&](int64_t k) {
      const double w = 1.0 + rest_ * p[k];  // 1 / (1 - (1 - β) u)
      return w * w * u(k);
    };
    for (int64_t k = 0; k < tile.keys(i); ++k) squares += u(k) * u(k);
    for (int64_t k = 0; k < tile.keys(i); ++k) sum += a(k) * a(k) * (1.0 - 2.0 * u(k) + squares);
    return sum;
  }

 private:
  double rest_;
};

}  // namespace

std::vector<AttentionFamily> gd_softmax_families() {
  return {{.name = "gd-softmax",
           .options = {{"beta", AttentionOption::Kind::kReal, "0.5", {}, "decay β, above 0; 1 is softmax"}},
           .idea = "e^x / (Σ of the others + β e^x)",
           .source = "arXiv 2210.17145",
           .kind = "row-wise",
           .cost = "7f + 1E",
           .ours = "all: the source has β in the classification loss",
           .causal = true,
           .validate =
               [](const AttentionSpec& spec) {
                 if (spec.real("beta") <= 0.0) {
                   throw UsageError("attention gd-softmax: beta={} must be above 0", spec.get("beta"));
                 }
               },
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 return make_tiled(spec, shape, std::make_unique<GdSoftmax>(spec.real("beta")));
               },
           .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
             ref::Row p = ref::softmax(x);
             for (double& value : p) value /= 1.0 - (1.0 - row.problem.spec.real("beta")) * value;
             return p;
           }),
           .examples = {"gd-softmax", "gd-softmax:beta=0.2", "gd-softmax:causal=1"}}};
}

}  // namespace lra
#endif
