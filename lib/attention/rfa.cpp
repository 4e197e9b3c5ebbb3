// Random feature attention (Peng et al. 2021, arXiv 2103.02143): queries and keys of length 1 and the Fourier features
// of the Gaussian kernel, phi(x) = [sin u, cos u] / sqrt(M), u_r = w_r·(scale ⊙ x / |x|), scale learned.
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_map.h"
#include "lib/attention/feature_rows.h"
#include "lib/attention/random_features.h"
#include "lib/attention/row_kernels.h"

namespace lra {
namespace {

constexpr double kShortest = 1e-12;  // length that rows are divided by
constexpr double kLeastDenominator = 1e-3;

class Rfa final : public FeatureMap {
 public:
  Rfa(const AttentionSpec& spec, const AttentionShape& shape)
      : heads_(shape.heads), d_(shape.head_dim), count_(random_features(spec, shape)) {}

  std::vector<KernelParameter> parameters() const override {
    return {{"omega", {heads_, count_, d_}, start_normal(1.0), false}, {"scale", {heads_, d_}, start_constant(1.0)}};
  }
  int64_t features() const override { return 2 * count_; }
  double feature_flops() const override { return 2.0 * static_cast<double>(count_ * d_); }

  void forward(const FeatureRows& rows, Matrix phi, Arena& arena) const override {
    const Matrix y = arena.matrix(phi.rows, d_), u = arena.matrix(phi.rows, count_);
    const float* scale = scale_of(rows);
    normalise(rows.x, y, arena);
    for (int64_t i = 0; i < y.rows; ++i) {
      for (int64_t c = 0; c < d_; ++c) y.row(i)[c] *= scale[c];
    }
    matmul(y, Transpose::kNo, omega_of(rows), Transpose::kYes, u, Write::kOver);
    wave_rows(static_cast<float>(1.0 / std::sqrt(static_cast<double>(count_))), u, phi.col_block(0, count_),
              phi.col_block(count_, count_));
  }

  void backward(const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx, std::span<float* const> d_parameters,
                Arena& arena) const override {
    const Matrix unit = arena.matrix(phi.rows, d_), dy = arena.matrix(phi.rows, d_);
    for (int64_t i = 0; i < phi.rows; ++i) {
      const float *sine = phi.row(i), *cosine = sine + count_;
      float* g = d_phi.row(i);
      for (int64_t r = 0; r < count_; ++r) g[r] = g[r] * cosine[r] - g[count_ + r] * sine[r];
    }
    matmul(d_phi.col_block(0, count_), Transpose::kNo, omega_of(rows), Transpose::kNo, dy, Write::kOver);
    const float* scale = scale_of(rows);
    const float* lengths = normalise(rows.x, unit, arena);
    float* d_scale = d_parameters[1] + rows.head * d_;
    for (int64_t i = 0; i < dx.rows; ++i) {
      const float* x = unit.row(i);
      float *g = dy.row(i), along = 0.0f;
      for (int64_t c = 0; c < d_; ++c) d_scale[c] += x[c] * g[c];
      for (int64_t c = 0; c < d_; ++c) g[c] *= scale[c];
      if (lengths[i] > static_cast<float>(kShortest)) {
        for (int64_t c = 0; c < d_; ++c) along += x[c] * g[c];
      }
      for (int64_t c = 0; c < d_; ++c) dx.row(i)[c] = (g[c] - along * x[c]) / lengths[i];
    }
  }

  Denominator denominator(float z, int64_t) const override { return away_from_zero(z, kLeastDenominator); }

 private:
  ConstMatrix omega_of(const FeatureRows& rows) const {
    return {rows.in.parameters[0] + rows.head * count_ * d_, count_, d_};
  }
  const float* scale_of(const FeatureRows& rows) const { return rows.in.parameters[1] + rows.head * d_; }
  // Returns the lengths that the rows were divided by.
  float* normalise(ConstMatrix x, Matrix unit, Arena& arena) const {
    float *lengths = arena.floats(x.rows), *factors = arena.floats(x.rows);
    dot_rows(x, x, lengths);
    for (int64_t i = 0; i < x.rows; ++i) {
      lengths[i] = std::max(std::sqrt(lengths[i]), static_cast<float>(kShortest));
      factors[i] = 1.0f / lengths[i];
    }
    scale_rows(1.0f, factors, 1, x, unit);
    return lengths;
  }

  int64_t heads_, d_, count_;
};

std::vector<ref::Row> rfa_features(const ref::AttentionProblem& problem, int head, bool keys) {
  const int64_t d = problem.shape.head_dim;
  const ref::Row &omega = problem.parameters[0], &scale = problem.parameters[1];
  const int64_t count = std::ssize(omega) / problem.shape.heads / d;
  std::vector<ref::Row> features;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    const double* x = (keys ? problem.k : problem.q).row(i) + head * d;
    double square = 0.0;
    for (int64_t c = 0; c < d; ++c) square += x[c] * x[c];
    ref::Row& row = features.emplace_back(2 * count);
    for (int64_t r = 0; r < count; ++r) {
      double u = 0.0;
      for (int64_t c = 0; c < d; ++c) u += omega[(head * count + r) * d + c] * scale[head * d + c] * x[c];
      u /= std::max(std::sqrt(square), kShortest);
      row[r] = std::sin(u) / std::sqrt(static_cast<double>(count));
      row[count + r] = std::cos(u) / std::sqrt(static_cast<double>(count));
    }
  }
  return features;
}

}  // namespace

std::vector<AttentionFamily> rfa_families() {
  return {
      {.name = "rfa",
       .options = {random_features_option()},
       .idea = "Fourier features of the Gaussian kernel on unit vectors, normalised",
       .source = "arXiv 2103.02143",
       .kind = "feature map",
       .cost = "none a score; 2M E a token",
       .linear = "own kernel",
       .ours = "|denominator| ≥ 1e-3; no gate",
       .causal = true,
       .jacobian = false,
       .validate = validate_random_features,
       .make =
           [](const AttentionSpec& spec, const AttentionShape& shape) {
             return make_feature_map(spec, shape, std::make_unique<Rfa>(spec, shape));
           },
       .reference = ref::kernelised({rfa_features, [](const ref::AttentionProblem&, double z,
                                                      int64_t) { return ref::away_from_zero(z, kLeastDenominator); }}),
       .examples = {"rfa", "rfa:features=16", "rfa:features=16,causal=1"}}};
}

}  // namespace lra
