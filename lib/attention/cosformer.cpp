// cosFormer (Qin et al. 2022, arXiv 2202.08791): relu(q)·relu(k) cos(θ_i - θ_j) with θ = π place / (2 padded length),
// places from 1, linear by the addition theorem: features relu(x) sin θ and relu(x) cos θ.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/attention/families.h"
#include "lib/attention/feature_map.h"

namespace lra {
namespace {

constexpr double kLeastDenominator = 1e-6;

double angle(int32_t place, const AttentionShape& shape) {
  return std::numbers::pi / 2.0 * (place + 1.0) / shape.padded_length;
}

class Cosformer final : public FeatureMap {
 public:
  explicit Cosformer(const AttentionShape& shape) : shape_(shape) {}

  int64_t features() const override { return 2 * static_cast<int64_t>(shape_.head_dim); }

  void forward(const FeatureRows& rows, Matrix phi, Arena&) const override {
    const int64_t d = rows.x.cols;
    for (int64_t i = 0; i < phi.rows; ++i) {
      const auto [sine, cosine] = turn(rows, i);
      const float* x = rows.x.row(i);
      float* f = phi.row(i);
      for (int64_t c = 0; c < d; ++c) f[c] = sine * std::max(x[c], 0.0f);
      for (int64_t c = 0; c < d; ++c) f[d + c] = cosine * std::max(x[c], 0.0f);
    }
  }

  void backward(const FeatureRows& rows, ConstMatrix, Matrix d_phi, Matrix dx, std::span<float* const>,
                Arena&) const override {
    const int64_t d = rows.x.cols;
    for (int64_t i = 0; i < dx.rows; ++i) {
      const auto [sine, cosine] = turn(rows, i);
      const float *x = rows.x.row(i), *g = d_phi.row(i);
      for (int64_t c = 0; c < d; ++c) dx.row(i)[c] = x[c] > 0.0f ? sine * g[c] + cosine * g[d + c] : 0.0f;
    }
  }

  Denominator denominator(float z, int64_t) const override {
    const auto least = static_cast<float>(kLeastDenominator);
    return {std::max(z, least), z >= least ? 1.0f : 0.0f};
  }

 private:
  struct Turn {
    float sine, cosine;
  };
  Turn turn(const FeatureRows& rows, int64_t i) const {
    const double theta = angle(rows.in.places[static_cast<size_t>(rows.first + i)], shape_);
    return {static_cast<float>(std::sin(theta)), static_cast<float>(std::cos(theta))};
  }

  AttentionShape shape_;
};

// Straight from the formula, without the addition theorem.
std::vector<ref::Row> cosformer_weights(const ref::AttentionProblem& problem, int head) {
  const int d = problem.shape.head_dim;
  std::vector<ref::Row> weights;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    ref::Row& row = weights.emplace_back(problem.keys(i));
    double z = 0.0;
    for (int64_t j = 0; j < std::ssize(row); ++j) {
      for (int c = head * d; c < (head + 1) * d; ++c) {
        row[j] += std::max(problem.q.row(i)[c], 0.0) * std::max(problem.k.row(j)[c], 0.0);
      }
      row[j] *= std::cos(angle(problem.places[i], problem.shape) - angle(problem.places[j], problem.shape));
      z += row[j];
    }
    for (double& weight : row) weight /= std::max(z, kLeastDenominator);
  }
  return weights;
}

}  // namespace

std::vector<AttentionFamily> cosformer_families() {
  return {{.name = "cosformer",
           .idea = "relu(q)·relu(k) cos(θ_i − θ_j) / max(Σ, 1e-6), θ = π (place + 1) / (2 padded length)",
           .source = "arXiv 2202.08791",
           .kind = "feature map",
           .cost = "none a score; 2D features",
           .linear = "exact",
           .ours = "the padded length is the model's",
           .causal = true,
           .jacobian = false,
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 return make_feature_map(spec, shape, std::make_unique<Cosformer>(shape));
               },
           .reference = ref::matrices(cosformer_weights),
           .examples = {"cosformer", "cosformer:causal=1"}}};
}

}  // namespace lra
