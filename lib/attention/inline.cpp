// InLine attention: P_j = (x_j - mean x + 1) / n, x = φ(q)·φ(k) / sqrt(D) (Han et al. 2024, "Bridging the Divide:
// Reconsidering Softmax and Linear Attention", arXiv 2412.06590); rows sum to 1 and may be negative. `inline-conv` adds
// a local convolution of V (local_mix.h). Backward: dx = (g - mean g) / n. Statistics of a row: 1 / n. The linear form:
// centred_linear.h.
#include <cmath>

#include "lib/attention/centred_linear.h"
#include "lib/attention/centred_rows.h"
#include "lib/attention/families.h"
#include "lib/attention/local_mix.h"
#include "lib/attention/score_activation.h"
#include "lib/util/check.h"

namespace lra {
namespace {

class Inline final : public ScoreActivation {
 public:
  bool whole_rows() const override { return true; }
  int statistics() const override { return 1; }
  void forward(const ScoreTile& tile, float* statistics, float*) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      const int64_t n = tile.columns(i);
      const float mean = row_mean(n, tile.s.row(i));
      row_affine(tile.row_kept(i), n, mean, 1.0f, 1.0f, tile.s.row(i));
      statistics[i] = 1.0f / static_cast<float>(n);
    }
  }
  void forward_end(const ScoreTile&, float*) const override {}
  void backward(const ScoreTile& tile, const float*, const float*, Matrix gradients,
                const RowGradients&) const override {
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      const int64_t n = tile.columns(i);
      const uint8_t* kept = tile.row_kept(i);
      float *s = tile.s.row(i), *g = gradients.row(i);
      const float mean = row_mean(n, s);
      const float sum = row_sums(kept, n, s, mean, g).sum;
      row_pull_back(kept, n, s, mean, 1.0f, sum / static_cast<float>(n), 0.0f, g);
      row_affine(kept, n, mean, 1.0f, 1.0f, s);
    }
  }
  std::optional<double> jacobian_square(const ScoreTile& tile, int64_t i, const float*, const float*) const override {
    const auto n = static_cast<double>(tile.keys(i));
    return (n - 1.0) / (n * n);
  }
};

// The map φ of inline's queries and keys, and its slope.
enum class Feature { kIdentity, kRelu, kLeakyRelu, kExp };

Feature feature_of(const AttentionSpec& spec) {
  const std::string& name = spec.get("features");
  return name == "relu"         ? Feature::kRelu
         : name == "leaky-relu" ? Feature::kLeakyRelu
         : name == "exp"        ? Feature::kExp
                                : Feature::kIdentity;
}

template <class T>
T feature_value(Feature feature, T x) {
  switch (feature) {
    case Feature::kRelu: return std::max(x, T(0));
    case Feature::kLeakyRelu: return x >= T(0) ? x : T(0.01) * x;
    case Feature::kExp: return std::exp(x);
    default: return x;
  }
}

float feature_slope(Feature feature, float x) {
  switch (feature) {
    case Feature::kRelu: return x > 0.0f ? 1.0f : 0.0f;
    case Feature::kLeakyRelu: return x > 0.0f ? 1.0f : 0.01f;
    case Feature::kExp: return std::exp(x);
    default: return 1.0f;
  }
}

// A kernel of φ(q) and φ(k).
class FeaturedKernel final : public AttentionKernel {
 public:
  FeaturedKernel(std::unique_ptr<AttentionKernel> inner, Feature feature)
      : AttentionKernel(inner->shape(), inner->spec()), inner_(std::move(inner)), feature_(feature) {}

  const std::vector<KernelParameter>& parameters() const override { return inner_->parameters(); }
  int64_t saved_floats(int64_t tokens, float dropout) const override { return inner_->saved_floats(tokens, dropout); }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override {
    const Arena::Scope scope(arena);
    inner_->forward(mapped(in, arena), out, saved, arena);
  }
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override {
    const Arena::Scope scope(arena);
    inner_->backward(mapped(in, arena), out, saved, gradients, arena);
    pull_back(in.q, gradients.dq);
    pull_back(in.k, gradients.dk);
  }
  double flops(int64_t tokens, bool training, float dropout) const override {
    return inner_->flops(tokens, training, dropout);
  }
  std::string form(bool training, float dropout) const override { return inner_->form(training, dropout); }
  bool dropout_applies() const override { return inner_->dropout_applies(); }
  bool has_weights() const override { return true; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override {
    const Arena::Scope scope(arena);
    inner_->visit_weights(mapped(in, arena), arena, visit);
  }

 private:
  AttentionInput mapped(AttentionInput in, Arena& arena) const {
    in.q = map(in.q, arena);
    in.k = map(in.k, arena);
    return in;
  }
  ConstMatrix map(ConstMatrix x, Arena& arena) const {
    const Matrix y = arena.matrix(x.rows, x.cols);
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t c = 0; c < x.cols; ++c) y.row(i)[c] = feature_value(feature_, x.row(i)[c]);
    }
    return y;
  }
  void pull_back(ConstMatrix x, Matrix dx) const {
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t c = 0; c < x.cols; ++c) dx.row(i)[c] *= feature_slope(feature_, x.row(i)[c]);
    }
  }

  std::unique_ptr<AttentionKernel> inner_;
  Feature feature_;
};

std::unique_ptr<AttentionKernel> make_inline(const AttentionSpec& spec, const AttentionShape& shape) {
  std::unique_ptr<AttentionKernel> kernel =
      choose_centred_form(CentredLinear::kInline, [&] { return make_tiled(spec, shape, std::make_unique<Inline>()); });
  const Feature feature = feature_of(spec);
  return feature == Feature::kIdentity ? std::move(kernel)
                                       : std::make_unique<FeaturedKernel>(std::move(kernel), feature);
}

const AttentionOption kFeatures = {"features",
                                   AttentionOption::Kind::kChoice,
                                   "identity",
                                   {"identity", "relu", "leaky-relu", "exp"},
                                   "φ of queries and keys"};

bool identity(const AttentionSpec& spec) { return spec.get("features") == "identity"; }

ref::Row inline_weights(const ref::RowPlace& row) {
  const ref::AttentionProblem& problem = row.problem;
  const int64_t d = problem.shape.head_dim, n = problem.keys(row.query);
  const Feature feature = feature_of(problem.spec);
  ref::Row p(n);
  double mean = 0.0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t c = row.head * d; c < (row.head + 1) * d; ++c) {
      p[j] += feature_value(feature, problem.q.row(row.query)[c]) * feature_value(feature, problem.k.row(j)[c]) /
              std::sqrt(static_cast<double>(d));
    }
    mean += p[j] / static_cast<double>(n);
  }
  for (double& value : p) value = (value - mean + 1.0) / static_cast<double>(n);
  return p;
}

// With dropout where the form has it.
ref::Row inline_reference(const ref::AttentionProblem& problem) {
  return ref::rows([](const ref::RowPlace& row, const ref::Row&) { return inline_weights(row); })(problem);
}

AttentionFamily inline_family() {
  return {.name = "inline",
          .options = {kFeatures, centred_form_option()},
          .idea = "(x − mean x + 1) / n, x = φ(q)·φ(k)/√D",
          .source = "arXiv 2412.06590",
          .kind = "row-wise",
          .cost = "O(N D²)",
          .linear = "exact",
          .causal = true,
          .plain_scores = identity,
          .make = make_inline,
          .reference = inline_reference,
          .examples = {"inline", "inline:form=linear", "inline:form=quadratic", "inline:features=exp,form=linear",
                       "inline:features=relu", "inline:features=leaky-relu", "inline:causal=1",
                       "inline:form=linear,causal=1", "inline:form=quadratic,causal=1",
                       "inline:features=exp,form=linear,causal=1"}};
}

}  // namespace

std::vector<AttentionFamily> inline_families() {
  AttentionFamily convolved = inline_family();
  convolved.name = "inline-conv";
  convolved.idea = "inline plus a depthwise convolution of V whose taps come from the mean input";
  convolved.ours = "width=0: three taps along the sequence";
  convolved.options.push_back({"width",
                               AttentionOption::Kind::kInteger,
                               "0",
                               {},
                               "0: 3 taps along the sequence; W: 3 × 3 taps, rows of W pixels"});
  convolved.causal = false;
  convolved.convolves = [](const AttentionSpec&) { return true; };
  convolved.validate = [](const AttentionSpec& spec) {
    if (spec.integer("width") < 0) {
      throw UsageError("attention inline-conv: width={} must be 0 or the width of the pictures", spec.get("width"));
    }
  };
  convolved.make = [](const AttentionSpec& spec, const AttentionShape& shape) {
    return add_local_mix(make_inline(spec, shape), static_cast<int>(spec.integer("width")));
  };
  convolved.reference = [](const ref::AttentionProblem& problem) {
    ref::Row out = inline_reference(problem);
    ref::add_local_mix(problem, 0, static_cast<int>(problem.spec.integer("width")), out);
    return out;
  };
  convolved.examples = {"inline-conv", "inline-conv:width=6", "inline-conv:features=exp,form=linear"};
  return {inline_family(), convolved};
}

}  // namespace lra
