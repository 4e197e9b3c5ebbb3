// Sigmoid attention: P_j = σ(x_j + b), b = -log n (Ramapuram et al. 2024, "Theory, Analysis, and Best Practices for
// Sigmoid Self-Attention", arXiv 2409.04431) or learnt a head; and σ(x)/√n, σ(x)/n of the same repository.
// Backward: dx = p (1 - p) g. Statistics of a row: the factor.
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/score_activation.h"
#include "lib/attention/score_maps.h"
#include "lib/attention/tile_matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/attention/sigmoid.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

#include "lib/attention/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {

struct SigmoidRow {
  RowVector bias;

  // 1 / (1 + e^-u), or e^u / (1 + e^u) for u < 0: nothing overflows.
  HWY_INLINE RowVector value(RowVector x) const {
    const RowTag d;
    const RowVector u = hn::Add(x, bias), one = hn::Set(d, 1.0f);
    const RowVector e = vector_exp_negative(d, hn::Neg(hn::Abs(u)));
    return hn::Div(hn::IfThenElse(hn::Lt(u, hn::Zero(d)), e, one), hn::Add(one, e));
  }
  HWY_INLINE RowVector slope(RowVector, RowVector e) const { return hn::NegMulAdd(e, e, e); }
};

// bias(i) of row i.
template <class Bias>
void sigmoid_forward_with(const ScoreTile& tile, const Bias& bias) {
  elementwise_forward(
      tile, [&](int64_t i) HWY_ATTR { return SigmoidRow{hn::Set(RowTag(), bias(i))}; }, NoSum());
}
template <class Bias>
float sigmoid_backward_with(const ScoreTile& tile, Matrix g, const Bias& bias) {
  float d_bias = 0.0f;
  elementwise_backward(
      tile, g, [&](int64_t i) HWY_ATTR { return SigmoidRow{hn::Set(RowTag(), bias(i))}; }, NoOffset(),
      [&](int64_t, float sum) { d_bias += sum; });
  return d_bias;
}

// biases (rows of the tile).
void sigmoid_forward(const ScoreTile& tile, const float* biases) {
  sigmoid_forward_with(tile, [&](int64_t i) { return biases[i]; });
}
// Returns the sum of all dx.
float sigmoid_backward(const ScoreTile& tile, const float* biases, Matrix g) {
  return sigmoid_backward_with(tile, g, [&](int64_t i) { return biases[i]; });
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {
namespace {

HWY_EXPORT(sigmoid_forward);
HWY_EXPORT(sigmoid_backward);

enum class Form { kBias, kSqrtN, kN };

class Sigmoid final : public ScoreActivation {
 public:
  Sigmoid(Form form, bool learnable) : form_(form), learnable_(learnable) {}

  int statistics() const override { return 1; }
  void forward(const ScoreTile& tile, float*, float*) const override {
    HWY_DYNAMIC_DISPATCH(sigmoid_forward)(tile, Biases(*this, tile).values);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override {
    for (int64_t i = 0; i < rows.s.rows; ++i) {
      const auto n = static_cast<float>(rows.keys(i));
      statistics[i] = form_ == Form::kN ? 1.0f / n : form_ == Form::kSqrtN ? 1.0f / std::sqrt(n) : 1.0f;
    }
  }
  void backward(const ScoreTile& tile, const float*, const float*, Matrix g,
                const RowGradients& gradients) const override {
    const float d_bias = HWY_DYNAMIC_DISPATCH(sigmoid_backward)(tile, Biases(*this, tile).values, g);
    if (learnable_) gradients.parameters[0][tile.head] += d_bias;
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float* p,
                                        const float* statistics) const override {
    double sum = 0.0;
    for (int64_t j = 0; j < tile.keys(i); ++j) {
      const double e = p[j] / static_cast<double>(statistics[0]), slope = statistics[0] * e * (1.0 - e);
      sum += slope * slope;
    }
    return sum;
  }

 private:
  struct Biases {
    float values[kMostTileRows];
    Biases(const Sigmoid& sigmoid, const ScoreTile& tile) {
      for (int64_t i = 0; i < tile.s.rows; ++i) {
        values[i] = sigmoid.form_ != Form::kBias ? 0.0f
                    : sigmoid.learnable_         ? tile.parameters[0][tile.head]
                                                 : -std::log(static_cast<float>(tile.keys(i)));
      }
    }
  };

  Form form_;
  bool learnable_;
};

AttentionFamily family(const std::string& name, Form form, const std::string& idea) {
  return {.name = name,
          .idea = idea,
          .source = "arXiv 2409.04431",
          .kind = "elementwise",
          .cost = "3f + 1E",
          .ours = "n = real keys of the row",
          .causal = true,
          .make =
              [form](const AttentionSpec& spec, const AttentionShape& shape) {
                std::vector<KernelParameter> parameters;
                const bool learnable = spec.flag("learnable");
                if (learnable) {
                  const double start = -std::log(static_cast<double>(shape.padded_length));
                  parameters.push_back({"bias", {shape.heads}, start_constant(start)});
                }
                return make_tiled(spec, shape, std::make_unique<Sigmoid>(form, learnable), std::move(parameters));
              },
          .reference = ref::rows([form](const ref::RowPlace& row, const ref::Row& x) {
            const double n = static_cast<double>(x.size());
            const bool learnable = row.problem.spec.flag("learnable");
            const double bias = form != Form::kBias ? 0.0 : learnable ? row.parameter(0) : -std::log(n);
            const double factor = form == Form::kN ? 1.0 / n : form == Form::kSqrtN ? 1.0 / std::sqrt(n) : 1.0;
            const SigmoidMap<double> map = {factor, bias};
            ref::Row p(x.size());
            for (size_t j = 0; j < x.size(); ++j) p[j] = map(x[j]).value;
            return p;
          }),
          .examples = {name, name + ":causal=1"}};
}

}  // namespace

std::vector<AttentionFamily> sigmoid_families() {
  AttentionFamily sigmoid = family("sigmoid", Form::kBias, "σ(x − log n)");
  sigmoid.options = {
      {"learnable", AttentionOption::Kind::kFlag, "0", {}, "σ(x + b), b learnt a head from −log of the padded length"}};
  sigmoid.ours += "; learnable";
  sigmoid.examples.emplace_back("sigmoid:learnable=1");
  return {sigmoid, family("sigmoid-sqrt-n", Form::kSqrtN, "σ(x) / √n"), family("sigmoid-n", Form::kN, "σ(x) / n")};
}

}  // namespace lra
#endif
