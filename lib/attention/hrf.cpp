// Hybrid random features (Choromanski et al. 2021, arXiv 2110.04367): exp(q·k / sqrt(D)) estimated by
//   λ · positive + (1 - λ) · trigonometric,  λ = angle(q, k) / π ≈ 1/2 - sum_r sgn(t_r·q) sgn(t_r·k) / (2R),
// so that each estimate serves where it varies least: small and large angles. λ is constant in the backward pass.
// Products of features are features: with y = x / D^(1/4), h = |y|² / 2 and
//   b(x) = [exp(w·y - h), exp(h) cos(w·y), exp(h) sin(w·y)] / sqrt(2M)  (3M)
// phi is b beside R copies of it times sgn(t_r·x) / sqrt(R), those of the keys' first M numbers negative: F = 3M (R +
// 1).
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_map.h"
#include "lib/attention/feature_rows.h"
#include "lib/attention/random_features.h"
#include "lib/attention/row_kernels.h"
#include "lib/util/check.h"

namespace lra {
namespace {

constexpr double kLeastDenominator = 1e-3;
constexpr int64_t kMostAngles = 256;

class Hrf final : public FeatureMap {
 public:
  Hrf(const AttentionSpec& spec, const AttentionShape& shape)
      : d_(shape.head_dim),
        count_(random_features(spec, shape)),
        angles_(spec.integer("angles")),
        scale_(static_cast<float>(std::pow(static_cast<double>(d_), -0.25))) {}

  std::vector<KernelParameter> parameters() const override {
    return {{"omega", {count_, d_}, start_orthogonal(d_), false}, {"tau", {angles_, d_}, start_normal(1.0), false}};
  }
  int64_t features() const override { return base() * (angles_ + 1); }
  double feature_flops() const override { return 2.0 * static_cast<double>((count_ + angles_) * d_); }

  void forward(const FeatureRows& rows, Matrix phi, Arena& arena) const override {
    const int64_t n = phi.rows;
    const Matrix u = arena.matrix(n, count_);
    float *halves = arena.floats(n), *growth = arena.floats(n);
    matmul(rows.x, Transpose::kNo, omega(rows), Transpose::kYes, u, Write::kOver, scale_);
    dot_rows(rows.x, rows.x, halves);
    for (int64_t i = 0; i < n; ++i) {
      halves[i] *= 0.5f * scale_ * scale_;
      growth[i] = std::exp(halves[i]);
    }
    const auto norm = static_cast<float>(1.0 / std::sqrt(2.0 * static_cast<double>(count_)));
    exp_rows({.shifts = halves, .factor = norm}, u, phi.col_block(0, count_));
    const Matrix cosines = phi.col_block(count_, count_), sines = phi.col_block(2 * count_, count_);
    wave_rows(norm, u, sines, cosines);
    scale_rows(1.0f, growth, 1, phi.col_block(count_, 2 * count_), phi.col_block(count_, 2 * count_));
    const Matrix signs = signs_of(rows, arena);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t r = 0; r < angles_; ++r) {
        const float sign = signs.row(i)[r], positive = rows.keys ? -sign : sign;
        const float* from = phi.row(i);
        float* to = phi.row(i) + (r + 1) * base();
        for (int64_t f = 0; f < count_; ++f) to[f] = positive * from[f];
        for (int64_t f = count_; f < base(); ++f) to[f] = sign * from[f];
      }
    }
  }

  void backward(const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx, std::span<float* const>,
                Arena& arena) const override {
    const Matrix signs = signs_of(rows, arena);
    float* d_halves = arena.floats(phi.rows);
    for (int64_t i = 0; i < phi.rows; ++i) {
      float* g = d_phi.row(i);
      for (int64_t r = 0; r < angles_; ++r) {
        const float sign = signs.row(i)[r], positive = rows.keys ? -sign : sign;
        const float* from = d_phi.row(i) + (r + 1) * base();
        for (int64_t f = 0; f < count_; ++f) g[f] += positive * from[f];
        for (int64_t f = count_; f < base(); ++f) g[f] += sign * from[f];
      }
      // From here on of b, whose numbers stand first in phi.
      const float *positive = phi.row(i), *cosine = positive + count_, *sine = cosine + count_;
      const float *g_cosine = g + count_, *g_sine = g_cosine + count_;
      float sum = 0.0f;
      for (int64_t f = 0; f < count_; ++f) {
        const float through_positive = g[f] * positive[f];
        sum += g_cosine[f] * cosine[f] + g_sine[f] * sine[f] - through_positive;
        g[f] = through_positive + g_sine[f] * cosine[f] - g_cosine[f] * sine[f];
      }
      d_halves[i] = sum;
    }
    scale_rows(scale_ * scale_, d_halves, 1, rows.x, dx);
    matmul(d_phi.col_block(0, count_), Transpose::kNo, omega(rows), Transpose::kNo, dx, Write::kAdd, scale_);
  }

  Denominator denominator(float z, int64_t) const override { return away_from_zero(z, kLeastDenominator); }

 private:
  int64_t base() const { return 3 * count_; }
  ConstMatrix omega(const FeatureRows& rows) const { return {rows.in.parameters[0], count_, d_}; }
  // sgn(t_r·x) / sqrt(R)
  Matrix signs_of(const FeatureRows& rows, Arena& arena) const {
    const Matrix signs = arena.matrix(rows.x.rows, angles_);
    matmul(rows.x, Transpose::kNo, ConstMatrix(rows.in.parameters[1], angles_, d_), Transpose::kYes, signs,
           Write::kOver);
    const auto unit = static_cast<float>(1.0 / std::sqrt(static_cast<double>(angles_)));
    for (int64_t i = 0; i < signs.rows; ++i) {
      for (int64_t r = 0; r < angles_; ++r) {
        const float dot = signs.row(i)[r];
        signs.row(i)[r] = unit * static_cast<float>((dot > 0.0f) - (dot < 0.0f));
      }
    }
    return signs;
  }

  int64_t d_, count_, angles_;
  float scale_;
};

// The two estimates and λ as they stand above, over all pairs.
std::vector<ref::Row> hrf_weights(const ref::AttentionProblem& problem, int head) {
  const int64_t d = problem.shape.head_dim, n = problem.tokens();
  const auto project = [&](const ref::Row& directions, MatrixView<const double> x, int64_t i, double scale) {
    ref::Row u(directions.size() / d, 0.0);
    for (size_t r = 0; r < u.size(); ++r) {
      for (int64_t c = 0; c < d; ++c) u[r] += directions[r * d + c] * scale * x.row(i)[head * d + c];
    }
    return u;
  };
  const double scale = std::pow(static_cast<double>(d), -0.25);
  struct Token {
    ref::Row positive, cosine, sine, signs;
  };
  const auto tokens = [&](MatrixView<const double> x, MatrixView<const double> constants) {
    std::vector<Token> all;
    for (int64_t i = 0; i < n; ++i) {
      Token token;
      double half = 0.0;
      for (int64_t c = 0; c < d; ++c) half += std::pow(scale * x.row(i)[head * d + c], 2) / 2.0;
      for (const double u : project(problem.parameters[0], x, i, scale)) {
        token.positive.push_back(std::exp(u - half));
        token.cosine.push_back(std::exp(half) * std::cos(u));
        token.sine.push_back(std::exp(half) * std::sin(u));
      }
      for (const double t : project(problem.parameters[1], constants, i, scale))
        token.signs.push_back((t > 0.0) - (t < 0.0));
      all.push_back(std::move(token));
    }
    return all;
  };
  const auto mean_product = [](const ref::Row& a, const ref::Row& b) {
    double sum = 0.0;
    for (size_t r = 0; r < a.size(); ++r) sum += a[r] * b[r];
    return sum / static_cast<double>(a.size());
  };
  const std::vector<Token> queries = tokens(problem.q, problem.for_constants().q);
  const std::vector<Token> keys = tokens(problem.k, problem.for_constants().k);
  std::vector<ref::Row> weights;
  for (int64_t i = 0; i < n; ++i) {
    ref::Row& row = weights.emplace_back(problem.keys(i));
    double z = 0.0;
    for (size_t j = 0; j < row.size(); ++j) {
      const double lambda = 0.5 - mean_product(queries[i].signs, keys[j].signs) / 2.0;
      const double wave = mean_product(queries[i].cosine, keys[j].cosine) + mean_product(queries[i].sine, keys[j].sine);
      z += row[j] = lambda * mean_product(queries[i].positive, keys[j].positive) + (1.0 - lambda) * wave;
    }
    for (double& weight : row) weight /= ref::away_from_zero(z, kLeastDenominator);
  }
  return weights;
}

void validate(const AttentionSpec& spec) {
  validate_random_features(spec);
  const int64_t angles = spec.integer("angles");
  if (angles < 1 || angles > kMostAngles) {
    throw UsageError("attention hrf: angles={} must be 1 to {}", angles, kMostAngles);
  }
}

}  // namespace

std::vector<AttentionFamily> hrf_families() {
  return {{.name = "hrf",
           .options = {random_features_option(),
                       {"angles", AttentionOption::Kind::kInteger, "8", {}, "directions that estimate angles, R"}},
           .idea = "λ · positive + (1 − λ) · trigonometric random features of exp(x), λ the angle / π, normalised",
           .source = "arXiv 2110.04367",
           .kind = "feature map",
           .cost = "none a score; 3M (R + 1) features a token",
           .linear = "own kernel",
           .ours = "|denominator| ≥ 1e-3",
           .causal = true,
           .jacobian = false,
           .validate = validate,
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 return make_feature_map(spec, shape, std::make_unique<Hrf>(spec, shape));
               },
           .reference = ref::matrices(hrf_weights),
           .examples = {"hrf", "hrf:features=16,angles=4", "hrf:features=16,causal=1"},
           .example_scale = 0.3f}};
}

}  // namespace lra
