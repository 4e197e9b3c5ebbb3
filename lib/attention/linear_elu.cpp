// Linear attention: phi = psi = elu + 1 on queries and keys as they are (Katharopoulos et al. 2020, "Transformers are
// RNNs", arXiv 2006.16236), and the form of the Nyströmformer's Long Range Arena code: a factor 1 / sqrt(n) instead of
// the denominator.
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_map.h"
#include "lib/attention/feature_rows.h"

namespace lra {
namespace {

class EluMap : public FeatureMap {
 public:
  explicit EluMap(const AttentionShape& shape) : d_(shape.head_dim) {}

  int64_t features() const override { return d_; }
  void forward(const FeatureRows& rows, Matrix phi, Arena&) const override { elu_rows(rows.x, phi); }
  void backward(const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx, std::span<float* const>,
                Arena&) const override {
    for (int64_t i = 0; i < dx.rows; ++i) {
      const float *x = rows.x.row(i), *f = phi.row(i), *g = d_phi.row(i);
      for (int64_t c = 0; c < d_; ++c) dx.row(i)[c] = g[c] * (x[c] > 0.0f ? 1.0f : f[c]);
    }
  }

 private:
  int64_t d_;
};

constexpr double kEpsilon = 1e-6;

class LinearElu final : public EluMap {
 public:
  using EluMap::EluMap;
  Denominator denominator(float z, int64_t) const override { return {z + static_cast<float>(kEpsilon), 1.0f}; }
};

class LinearEluLra final : public EluMap {
 public:
  LinearEluLra(const AttentionSpec& spec, const AttentionShape& shape)
      : EluMap(shape), length_(spec.get("length") == "max" ? shape.padded_length : 0) {}
  Denominator denominator(float, int64_t keys) const override {
    return {static_cast<float>(std::sqrt(static_cast<double>(length_ > 0 ? length_ : keys))), 0.0f};
  }

 private:
  int64_t length_;
};

std::vector<ref::Row> elu_features(const ref::AttentionProblem& problem, int head, bool keys) {
  const int d = problem.shape.head_dim;
  std::vector<ref::Row> features;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    ref::Row& row = features.emplace_back();
    for (int c = head * d; c < (head + 1) * d; ++c) {
      const double x = (keys ? problem.k : problem.q).row(i)[c];
      row.push_back(x > 0.0 ? x + 1.0 : std::exp(x));
    }
  }
  return features;
}

}  // namespace

std::vector<AttentionFamily> linear_elu_families() {
  AttentionFamily elu = {
      .name = "linear-elu",
      .idea = "φ(q)·φ(k) / (Σ + 1e-6), φ = elu + 1",
      .source = "arXiv 2006.16236",
      .kind = "feature map",
      .cost = "none a score; D features a token",
      .linear = "exact",
      .causal = true,
      .jacobian = false,
      .make =
          [](const AttentionSpec& spec, const AttentionShape& shape) {
            return make_feature_map(spec, shape, std::make_unique<LinearElu>(shape));
          },
      .reference =
          ref::kernelised({elu_features, [](const ref::AttentionProblem&, double z, int64_t) { return z + kEpsilon; }}),
      .examples = {"linear-elu", "linear-elu:causal=1", "linear-elu+xsa"}};
  AttentionFamily lra = {
      .name = "linear-elu-lra",
      .options = {{"length",
                   AttentionOption::Kind::kChoice,
                   "real",
                   {"real", "max"},
                   "n of the factor: real keys or padded length"}},
      .idea = "φ(q)·φ(k) / √n, φ = elu + 1: no denominator",
      .source = "code of arXiv 2102.03902",
      .kind = "feature map",
      .cost = "as linear-elu",
      .linear = "exact",
      .ours = "length=real; the source has the padded length",
      .causal = true,
      .jacobian = false,
      .make =
          [](const AttentionSpec& spec, const AttentionShape& shape) {
            return make_feature_map(spec, shape, std::make_unique<LinearEluLra>(spec, shape));
          },
      .reference = ref::kernelised({elu_features,
                                    [](const ref::AttentionProblem& problem, double, int64_t keys) {
                                      const bool max = problem.spec.get("length") == "max";
                                      return std::sqrt(static_cast<double>(max ? problem.shape.padded_length : keys));
                                    }}),
      .examples = {"linear-elu-lra", "linear-elu-lra:length=max", "linear-elu-lra:causal=1"}};
  return {elu, lra};
}

}  // namespace lra
