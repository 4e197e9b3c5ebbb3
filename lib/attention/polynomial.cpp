// Polynomial attention: P = gain x^q / c, no normalisation ("Rethinking Softmax: Self-Attention with Polynomial
// Activations", arXiv 2410.18613). c is a number, sqrt(n), n, or sqrt(n m_q) with m_q = E[x^(2q)] for Gaussian queries
// and keys. Statistics of a row: 1 / c. Powers 1 and 2 have an exact form in linear time (polynomial_linear.h) too.
#include "lib/attention/polynomial.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/form_choice.h"
#include "lib/attention/polynomial_linear.h"
#include "lib/attention/score_activation.h"
#include "lib/attention/score_maps.h"
#include "lib/util/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/polynomial.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

template <int kPower>
HWY_INLINE RowVector power_of(RowVector x) {
  if constexpr (kPower == 0) {
    return hn::Set(RowTag(), 1.0f);
  } else if constexpr (kPower == 1) {
    return x;
  } else if constexpr (kPower % 2 == 0) {
    const RowVector half = power_of<kPower / 2>(x);
    return hn::Mul(half, half);
  } else {
    return hn::Mul(x, power_of<kPower - 1>(x));
  }
}

template <int kPower>
void forward(float gain, const ScoreTile& tile) {
  const RowVector scale = hn::Set(RowTag(), gain);
  for (int64_t i = 0; i < tile.s.rows; ++i) {
    float* s = tile.s.row(i);
    for_each_vector(tile.row_kept(i), tile.columns(i), [&](auto access, int64_t j) HWY_ATTR {
      const RowVector weight = hn::Mul(scale, power_of<kPower>(access.load(s + j, 0.0f)));
      access.store(access.keep(weight, j), s + j);
    });
  }
}

// dx = gain q x^(q-1) g; returns sum x^q g, the gradient of the gain.
template <int kPower>
float backward(float gain, const ScoreTile& tile, Matrix gradients) {
  const RowTag d;
  const RowVector scale = hn::Set(d, gain), slope = hn::Set(d, gain * static_cast<float>(kPower));
  RowVector sum = hn::Zero(d);
  for (int64_t i = 0; i < tile.s.rows; ++i) {
    float* s = tile.s.row(i);
    float* g = gradients.row(i);
    for_each_vector(tile.row_kept(i), tile.columns(i), [&](auto access, int64_t j) HWY_ATTR {
      const RowVector x = access.load(s + j, 0.0f), gradient = access.keep(access.load(g + j, 0.0f), j);
      const RowVector lower = power_of<kPower - 1>(x), whole = hn::Mul(x, lower);
      sum = hn::MulAdd(whole, gradient, sum);
      access.store(access.keep(hn::Mul(scale, whole), j), s + j);
      access.store(hn::Mul(hn::Mul(slope, lower), gradient), g + j);
    });
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void polynomial_forward(int power, float gain, const ScoreTile& tile) {
  switch (power) {
    case 1: return forward<1>(gain, tile);
    case 2: return forward<2>(gain, tile);
    case 3: return forward<3>(gain, tile);
    case 4: return forward<4>(gain, tile);
    case 5: return forward<5>(gain, tile);
    case 6: return forward<6>(gain, tile);
    case 7: return forward<7>(gain, tile);
    default: return forward<8>(gain, tile);
  }
}

float polynomial_backward(int power, float gain, const ScoreTile& tile, Matrix g) {
  switch (power) {
    case 1: return backward<1>(gain, tile, g);
    case 2: return backward<2>(gain, tile, g);
    case 3: return backward<3>(gain, tile, g);
    case 4: return backward<4>(gain, tile, g);
    case 5: return backward<5>(gain, tile, g);
    case 6: return backward<6>(gain, tile, g);
    case 7: return backward<7>(gain, tile, g);
    default: return backward<8>(gain, tile, g);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

double polynomial_moment(int power, int head_dim) {
  double moment = 1.0;
  for (int odd = 1; odd < 2 * power; odd += 2) moment *= odd;
  for (int r = 0; r < power; ++r) moment *= 1.0 + 2.0 * r / head_dim;
  return moment;
}

PolynomialOptions::PolynomialOptions(const AttentionSpec& spec, const AttentionShape& shape)
    : power_(static_cast<int>(spec.integer("power"))),
      learnt_gain_(spec.flag("gain")),
      fixed_length_(spec.get("length") == "max" ? shape.padded_length : 0),
      scale_(spec.get("scale")),
      moment_(polynomial_moment(power_, shape.head_dim)) {
  if (scale_ != "sqrt" && scale_ != "n" && scale_ != "moment") constant_ = spec.real("scale");
}

double PolynomialOptions::divisor(int64_t keys) const {
  const double n = static_cast<double>(fixed_length_ > 0 ? fixed_length_ : keys);
  if (scale_ == "sqrt") return std::sqrt(n);
  if (scale_ == "n") return n;
  if (scale_ == "moment") return std::sqrt(n * moment_);
  return constant_;
}

std::vector<KernelParameter> polynomial_parameters(const AttentionSpec& spec, const AttentionShape& shape) {
  if (!spec.flag("gain")) return {};
  return {{"gain", {shape.heads}, start_constant(1.0)}};
}

namespace {

HWY_EXPORT(polynomial_forward);
HWY_EXPORT(polynomial_backward);

class Polynomial final : public ScoreActivation {
 public:
  Polynomial(const AttentionSpec& spec, const AttentionShape& shape) : options_(spec, shape) {}

  int statistics() const override { return 1; }

  void forward(const ScoreTile& tile, float*, float*) const override {
    HWY_DYNAMIC_DISPATCH(polynomial_forward)(options_.power(), gain(tile), tile);
  }

  void forward_end(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i) {
      statistics[i] = static_cast<float>(1.0 / options_.divisor(rows.keys(i)));
    }
  }

  void backward(const ScoreTile& tile, const float*, const float*, Matrix g,
                const RowGradients& gradients) const override {
    const float d_gain = HWY_DYNAMIC_DISPATCH(polynomial_backward)(options_.power(), gain(tile), tile, g);
    if (options_.learnt_gain()) gradients.parameters[0][tile.head] += d_gain;
  }

  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float*,
                                        const float* statistics) const override {
    const PowerMap<double> map = {options_.power(), static_cast<double>(gain(tile)) * statistics[0]};
    double sum = 0.0;
    for (int64_t j = 0; j < tile.keys(i); ++j) {
      const double slope = map(tile.s.row(i)[j]).slope;
      sum += slope * slope;
    }
    return sum;
  }

 private:
  float gain(const ScoreTile& tile) const { return options_.gain(tile.parameters, tile.head); }

  PolynomialOptions options_;
};

}  // namespace

std::unique_ptr<AttentionKernel> polynomial_quadratic(const AttentionSpec& spec, const AttentionShape& shape) {
  return make_tiled(spec, shape, std::make_unique<Polynomial>(spec, shape), polynomial_parameters(spec, shape));
}

namespace {

void validate(const AttentionSpec& spec) {
  const int64_t power = spec.integer("power");
  if (power < 1 || power > 8) throw UsageError("attention polynomial: power={} must be 1 to 8", spec.get("power"));
  if (spec.get("form") == "linear" && power > kLargestLinearPower) {
    throw UsageError("attention polynomial: form=linear has power=1 and power=2, not power={}; use form=auto", power);
  }
  const std::string& scale = spec.get("scale");
  if (scale == "sqrt" || scale == "n" || scale == "moment") return;
  char* end = nullptr;
  const double value = std::strtod(scale.c_str(), &end);
  if (end == scale.c_str() || *end != '\0' || !std::isfinite(value) || value <= 0.0) {
    throw UsageError("attention polynomial: scale={} must be a positive number, sqrt, n or moment", scale);
  }
}

}  // namespace

std::vector<AttentionFamily> polynomial_families() {
  using Kind = AttentionOption::Kind;
  return {{.name = "polynomial",
           .options = {{"power", Kind::kInteger, "3", {}, "exponent q, 1 to 8"},
                       {"scale", Kind::kText, "16", {}, "divisor c: a positive number, sqrt, n or moment"},
                       {"length", Kind::kChoice, "real", {"real", "max"}, "n of the scale: real keys or padded length"},
                       {"gain", Kind::kFlag, "0", {}, "learn a factor a head, from 1"},
                       {"form",
                        Kind::kChoice,
                        "auto",
                        {"auto", "quadratic", "linear"},
                        "linear: in linear time, power 1 and 2, no dropout; auto: where exact and cheaper"}},
           .idea = "x^q / c, not normalised: keeps ‖P‖ at O(√N)",
           .source = "arXiv 2410.18613",
           .kind = "elementwise",
           .cost = "q f",
           .linear = "exact, q ≤ 2",
           .ours = "scale=sqrt, n, moment; gain; causal",
           .causal = true,
           .validate = validate,
           .make = [](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
             const std::string& form = spec.get("form");
             if (form == "quadratic" || spec.integer("power") > kLargestLinearPower) {
               return polynomial_quadratic(spec, shape);
             }
             std::unique_ptr<AttentionKernel> linear = polynomial_linear(spec, shape);
             if (form == "linear") return linear;
             return choose_form(polynomial_quadratic(spec, shape), std::move(linear));
           },
           .reference = ref::rows([](const ref::RowPlace& row, const ref::Row& x) {
             const AttentionSpec& spec = row.problem.spec;
             const int power = static_cast<int>(spec.integer("power"));
             const double c = PolynomialOptions(spec, row.problem.shape).divisor(std::ssize(x));
             const PowerMap<double> map = {power, (spec.flag("gain") ? row.parameter(0) : 1.0) / c};
             ref::Row p(x.size());
             for (size_t j = 0; j < x.size(); ++j) p[j] = map(x[j]).value;
             return p;
           }),
           .examples = {"polynomial:power=1,scale=sqrt,form=quadratic", "polynomial:power=1,scale=sqrt,form=linear",
                        "polynomial:power=1,gain=1,form=linear", "polynomial:power=2,scale=n,form=quadratic",
                        "polynomial:power=2,scale=n,gain=1,form=linear",
                        "polynomial:power=2,scale=moment,length=max,form=linear", "polynomial",
                        "polynomial:power=4,scale=moment", "polynomial:power=5,scale=sqrt,length=max",
                        "polynomial:power=6,scale=moment,gain=1", "polynomial:power=7,scale=n",
                        "polynomial:power=8,scale=1000", "polynomial:scale=sqrt,gain=1,causal=1",
                        "polynomial:power=1,scale=sqrt,form=linear,causal=1",
                        "polynomial:power=2,scale=n,gain=1,form=linear,causal=1", "polynomial+xsa"}}};
}

}  // namespace lra
#endif
