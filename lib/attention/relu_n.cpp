// ReLU attention. `relu-n`: P_j = relu(x_j)^power / n^a (Wortsman et al. 2023, "Replacing softmax with ReLU in Vision
// Transformers", arXiv 2309.08586). `rela`: P = relu(S), not scaled; an RMS norm over the heads' outputs together, with
// a gate on request, does what the scale would do (Zhang et al. 2021, "Sparse Attention with Linear Units", arXiv
// 2104.07012). Backward: dx = power relu(x)^(power - 1) g. Statistics of a row: the factor.
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/score_activation.h"
#include "lib/attention/score_maps.h"
#include "lib/util/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/relu_n.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

template <bool kSquare>
struct ReluRow {
  HWY_INLINE RowVector value(RowVector x) const {
    const RowVector r = hn::Max(x, hn::Zero(RowTag()));
    return kSquare ? hn::Mul(r, r) : r;
  }
  HWY_INLINE RowVector slope(RowVector x, RowVector) const {
    const RowVector zero = hn::Zero(RowTag());
    if constexpr (kSquare) return hn::Max(hn::Add(x, x), zero);
    return hn::IfThenElseZero(hn::Gt(x, zero), hn::Set(RowTag(), 1.0f));
  }
};

template <bool kSquare>
void relu_forward_of(const ScoreTile& tile) {
  elementwise_forward(
      tile, [](int64_t) HWY_ATTR { return ReluRow<kSquare>(); }, NoSum());
}
template <bool kSquare>
void relu_backward_of(const ScoreTile& tile, Matrix g) {
  elementwise_backward(
      tile, g, [](int64_t) HWY_ATTR { return ReluRow<kSquare>(); }, NoOffset(), NoSum());
}

void relu_forward(bool square, const ScoreTile& tile) {
  square ? relu_forward_of<true>(tile) : relu_forward_of<false>(tile);
}
void relu_backward(bool square, const ScoreTile& tile, Matrix g) {
  square ? relu_backward_of<true>(tile, g) : relu_backward_of<false>(tile, g);
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(relu_forward);
HWY_EXPORT(relu_backward);

class Relu final : public ScoreActivation {
 public:
  // P = relu(x)^power / n^exponent.
  Relu(int64_t power, double exponent) : square_(power == 2), exponent_(exponent) {}

  int statistics() const override { return 1; }
  void forward(const ScoreTile& tile, float*, float*) const override {
    HWY_DYNAMIC_DISPATCH(relu_forward)(square_, tile);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i) {
      statistics[i] = static_cast<float>(std::pow(static_cast<double>(rows.keys(i)), -exponent_));
    }
  }
  void backward(const ScoreTile& tile, const float*, const float*, Matrix g, const RowGradients&) const override {
    HWY_DYNAMIC_DISPATCH(relu_backward)(square_, tile, g);
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float*,
                                        const float* statistics) const override {
    const ReluMap<double> map = {square_, statistics[0]};
    double sum = 0.0;
    for (int64_t j = 0; j < tile.keys(i); ++j) {
      const double slope = map(tile.s.row(i)[j]).slope;
      sum += slope * slope;
    }
    return sum;
  }

 private:
  bool square_;
  double exponent_;
};

ref::Row relu_weights(const ref::Row& x, bool square, double exponent) {
  const ReluMap<double> map = {square, std::pow(static_cast<double>(x.size()), -exponent)};
  ref::Row p(x.size());
  for (size_t j = 0; j < x.size(); ++j) p[j] = map(x[j]).value;
  return p;
}

// Of a token's outputs o of all heads together: gain ⊙ o / rms(o) [⊙ σ(gate ⊙ o)], rms² = mean o² + epsilon.
class RmsGate final : public OutputMap {
 public:
  RmsGate(const AttentionShape& shape, bool gate) : width_(shape.heads * shape.head_dim), gate_(gate) {}
  static constexpr double kEpsilon = 1e-8;

  std::vector<KernelParameter> parameters() const override {
    std::vector<KernelParameter> all = {{"gain", {width_}, start_constant(1.0)}};
    if (gate_) all.push_back({"gate", {width_}, start_constant(0.0)});
    return all;
  }
  void forward(const AttentionInput& in, ConstMatrix y, Matrix out) const override {
    for (int64_t i = 0; i < y.rows; ++i) {
      const float* o = y.row(i);
      const float r = reciprocal_rms(o);
      for (int64_t c = 0; c < width_; ++c) out.row(i)[c] = in.parameters[0][c] * o[c] * r * gate(in, o, c);
    }
  }
  // With ô = o r and u = σ(w ⊙ o): dô = dy γ u, do = r (dô - ô mean(dô ô)) + du u (1 - u) w.
  void backward(const AttentionInput& in, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix,
                std::span<float* const> d_parameters) const override {
    for (int64_t i = 0; i < y.rows; ++i) {
      const float *o = y.row(i), *d = d_out.row(i);
      const float r = reciprocal_rms(o);
      float dot = 0.0f;
      for (int64_t c = 0; c < width_; ++c) dot += d[c] * in.parameters[0][c] * gate(in, o, c) * o[c] * r;
      dot /= static_cast<float>(width_);
      for (int64_t c = 0; c < width_; ++c) {
        const float gain = in.parameters[0][c], u = gate(in, o, c), unit = o[c] * r;
        dy.row(i)[c] = r * (d[c] * gain * u - unit * dot);
        if (d_parameters[0] != nullptr) d_parameters[0][c] += d[c] * unit * u;
        if (!gate_) continue;
        const float du = d[c] * gain * unit * u * (1.0f - u);
        dy.row(i)[c] += du * in.parameters[1][c];
        if (d_parameters[1] != nullptr) d_parameters[1][c] += du * o[c];
      }
    }
  }

 private:
  float reciprocal_rms(const float* o) const {
    float squares = 0.0f;
    for (int64_t c = 0; c < width_; ++c) squares += o[c] * o[c];
    return 1.0f / std::sqrt(squares / static_cast<float>(width_) + static_cast<float>(kEpsilon));
  }
  float gate(const AttentionInput& in, const float* o, int64_t c) const {
    return gate_ ? 1.0f / (1.0f + std::exp(-in.parameters[1][c] * o[c])) : 1.0f;
  }

  int64_t width_;
  bool gate_;
};

void rms_gate_reference(const ref::AttentionProblem& problem, ref::Row& out) {
  const bool gate = problem.spec.flag("gate");
  const int64_t width = problem.shape.heads * problem.shape.head_dim;
  const auto& gain = problem.parameters[0];
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    double* o = out.data() + i * width;
    double squares = 0.0;
    for (int64_t c = 0; c < width; ++c) squares += o[c] * o[c];
    const double rms = std::sqrt(squares / static_cast<double>(width) + RmsGate::kEpsilon);
    for (int64_t c = 0; c < width; ++c) {
      const double open = gate ? 1.0 / (1.0 + std::exp(-problem.parameters[1][c] * o[c])) : 1.0;
      o[c] *= gain[c] / rms * open;
    }
  }
}

}  // namespace

std::vector<AttentionFamily> relu_n_families() {
  using Kind = AttentionOption::Kind;
  return {{.name = "relu-n",
           .options = {{"power", Kind::kInteger, "1", {}, "1 or 2"}, {"a", Kind::kReal, "1", {}, "exponent of n"}},
           .idea = "relu(x)^power / n^a",
           .source = "arXiv 2309.08586",
           .kind = "elementwise",
           .cost = "2–3f",
           .causal = true,
           .validate =
               [](const AttentionSpec& spec) {
                 const int64_t power = spec.integer("power");
                 if (power != 1 && power != 2) {
                   throw UsageError("attention relu-n: power={} must be 1 or 2", spec.get("power"));
                 }
               },
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 return make_tiled(spec, shape, std::make_unique<Relu>(spec.integer("power"), spec.real("a")));
               },
           .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
             const AttentionSpec& spec = row.problem.spec;
             return relu_weights(x, spec.integer("power") == 2, spec.real("a"));
           }),
           .examples = {"relu-n", "relu-n:power=2,a=0.5", "relu-n:causal=1"}},
          {.name = "rela",
           .options = {{"gate", Kind::kFlag, "0", {}, "a gate σ(w ⊙ o), w learnt from 0"}},
           .idea = "relu(x); outputs of all heads through gain ⊙ o / rms(o)",
           .source = "arXiv 2104.07012",
           .kind = "elementwise",
           .cost = "1f",
           .ours = "gate starts at 0",
           .causal = true,
           .make = [](const AttentionSpec& spec,
                      const AttentionShape& shape) { return make_tiled(spec, shape, std::make_unique<Relu>(1, 0.0)); },
           .finish = [](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<OutputMap> {
             return std::make_unique<RmsGate>(shape, spec.flag("gate"));
           },
           .reference = ref::rows([](const ref::RowPlace&, const ref::Row& x) { return relu_weights(x, false, 0.0); }),
           .finish_reference = rms_gate_reference,
           .examples = {"rela", "rela:gate=1", "rela:causal=1", "rela+xsa"}}};
}

}  // namespace lra
#endif
