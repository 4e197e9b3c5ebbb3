// Random Maclaurin features of exp(q·k / sqrt(D)) (Kar & Karnick 2012; Macformer, arXiv 2408.11656): a feature draws a
// degree t with probability 2^(-t-1) and is sqrt(2^(t+1) / (t! M)) prod_{r<t} e_r·y, e_r random signs, y = x / D^(1/4).
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_map.h"
#include "lib/attention/random_features.h"
#include "lib/ops/matmul.h"

namespace lra {
namespace {

constexpr int64_t kLargestDegree = 10;
constexpr double kLeastDenominator = 1e-3;

double coefficient(int64_t degree, int64_t features) {
  return std::sqrt(std::pow(2.0, degree + 1) / std::tgamma(degree + 1.0) / static_cast<double>(features));
}

class Rmfa final : public FeatureMap {
 public:
  Rmfa(const AttentionSpec& spec, const AttentionShape& shape)
      : d_(shape.head_dim),
        features_(random_features(spec, shape)),
        scale_(static_cast<float>(std::pow(static_cast<double>(d_), -0.25))) {}

  std::vector<KernelParameter> parameters() const override {
    const auto degrees = [](Random& random, std::span<float> x) {
      for (float& degree : x) {
        const double halvings = std::floor(-std::log2(1.0 - random.uniform()));
        degree = static_cast<float>(std::min(halvings, static_cast<double>(kLargestDegree)));
      }
    };
    const auto signs = [](Random& random, std::span<float> x) {
      for (float& sign : x) sign = random.below(2) == 0 ? -1.0f : 1.0f;
    };
    return {{"degree", {features_}, degrees, false}, {"signs", {kLargestDegree, features_, d_}, signs, false}};
  }
  int64_t features() const override { return features_; }
  // Degrees are 1 on average.
  double feature_flops() const override { return 2.0 * static_cast<double>(features_ * d_); }

  void forward(const FeatureRows& rows, Matrix phi, Arena& arena) const override {
    const Matrix factors = factors_of(rows, arena);
    for (int64_t i = 0; i < phi.rows; ++i) {
      const float* factor = factors.row(i);
      for (int64_t f = 0; f < features_; ++f) {
        const int64_t t = degree(rows.in, f);
        float product = static_cast<float>(coefficient_of(t));
        for (int64_t r = 0; r < t; ++r) product *= factor[r];
        phi.row(i)[f] = product;
        factor += t;
      }
    }
  }

  // The gradient of a factor is the product of the others.
  void backward(const FeatureRows& rows, ConstMatrix, Matrix d_phi, Matrix dx, std::span<float* const>,
                Arena& arena) const override {
    const Matrix directions = directions_of(rows.in, arena);
    const Matrix factors = arena.matrix(dx.rows, directions.rows);
    project(rows.x, directions, factors);
    for (int64_t i = 0; i < dx.rows; ++i) {
      float* factor = factors.row(i);
      for (int64_t f = 0; f < features_; ++f) {
        const int64_t t = degree(rows.in, f);
        float behind[kLargestDegree + 1];
        behind[t] = 1.0f;
        for (int64_t r = t; r > 0; --r) behind[r - 1] = behind[r] * factor[r - 1];
        float before = static_cast<float>(coefficient_of(t)) * d_phi.row(i)[f];
        for (int64_t r = 0; r < t; ++r) {
          const float own = factor[r];
          factor[r] = before * behind[r + 1];
          before *= own;
        }
        factor += t;
      }
    }
    matmul(factors, Transpose::kNo, directions, Transpose::kNo, dx, Write::kOver, scale_);
  }

  Denominator denominator(float z, int64_t) const override { return away_from_zero(z, kLeastDenominator); }

 private:
  double coefficient_of(int64_t degree) const { return coefficients_[static_cast<size_t>(degree)]; }
  static int64_t degree(const AttentionInput& in, int64_t feature) {
    return std::clamp<int64_t>(static_cast<int64_t>(in.parameters[0][feature]), 0, kLargestDegree);
  }
  // The signs that features have, feature after feature: a row a factor.
  Matrix directions_of(const AttentionInput& in, Arena& arena) const {
    int64_t rows = 0;
    for (int64_t f = 0; f < features_; ++f) rows += degree(in, f);
    const Matrix directions = arena.matrix(rows, d_);
    int64_t row = 0;
    for (int64_t f = 0; f < features_; ++f) {
      for (int64_t r = 0; r < degree(in, f); ++r) {
        std::copy_n(in.parameters[1] + (r * features_ + f) * d_, d_, directions.row(row++));
      }
    }
    return directions;
  }
  void project(ConstMatrix x, ConstMatrix directions, Matrix factors) const {
    matmul(x, Transpose::kNo, directions, Transpose::kYes, factors, Write::kOver, scale_);
  }
  Matrix factors_of(const FeatureRows& rows, Arena& arena) const {
    const Matrix directions = directions_of(rows.in, arena);
    const Matrix factors = arena.matrix(rows.x.rows, directions.rows);
    project(rows.x, directions, factors);
    return factors;
  }

  int64_t d_, features_;
  float scale_;
  std::vector<double> coefficients_ = [this] {
    std::vector<double> all;
    for (int64_t t = 0; t <= kLargestDegree; ++t) all.push_back(coefficient(t, features_));
    return all;
  }();
};

std::vector<ref::Row> rmfa_features(const ref::AttentionProblem& problem, int head, bool keys) {
  const int64_t d = problem.shape.head_dim, count = std::ssize(problem.parameters[0]);
  std::vector<ref::Row> features;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    const double* x = (keys ? problem.k : problem.q).row(i) + head * d;
    ref::Row& row = features.emplace_back();
    for (int64_t f = 0; f < count; ++f) {
      const auto degree = static_cast<int64_t>(problem.parameters[0][f]);
      row.push_back(coefficient(degree, count));
      for (int64_t r = 0; r < degree; ++r) {
        double factor = 0.0;
        for (int64_t c = 0; c < d; ++c) factor += problem.parameters[1][(r * count + f) * d + c] * x[c];
        row.back() *= factor / std::pow(static_cast<double>(d), 0.25);
      }
    }
  }
  return features;
}

}  // namespace

std::vector<AttentionFamily> rmfa_families() {
  return {
      {.name = "rmfa",
       .options = {random_features_option()},
       .idea = "random Maclaurin features of exp(x), normalised",
       .source = "arXiv 2408.11656",
       .kind = "feature map",
       .cost = "none a score; M features a token",
       .linear = "own kernel",
       .ours = "|denominator| ≥ 1e-3; degree ≤ 10; no batch norms around it",
       .causal = true,
       .jacobian = false,
       .validate = validate_random_features,
       .make =
           [](const AttentionSpec& spec, const AttentionShape& shape) {
             return make_feature_map(spec, shape, std::make_unique<Rmfa>(spec, shape));
           },
       .reference = ref::kernelised({rmfa_features, [](const ref::AttentionProblem&, double z,
                                                       int64_t) { return ref::away_from_zero(z, kLeastDenominator); }}),
       .examples = {"rmfa:features=64", "rmfa:features=16", "rmfa:features=16,causal=1"},
       .example_scale = 0.3f}};
}

}  // namespace lra
