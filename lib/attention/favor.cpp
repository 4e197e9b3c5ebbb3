// FAVOR+ of the Performer (Choromanski et al. 2020, arXiv 2009.14794): positive random features of exp(q·k / sqrt(D)),
//   phi_r(x) = (exp(w_r·y - |y|² / 2 - c) + 1e-4) / sqrt(M),  y = x / D^(1/4),
// c a constant that keeps the exponential in range: the largest w_r·y of the row for queries, of all keys for keys.
// Causal keys go without, since their maximum would tell of later ones: w·y - |y|² / 2 <= |w|² / 2 bounds them.
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_map.h"
#include "lib/attention/feature_rows.h"
#include "lib/attention/random_features.h"
#include "lib/attention/row_kernels.h"

namespace lra {
namespace {

constexpr double kEpsilon = 1e-4;

class Favor final : public FeatureMap {
 public:
  Favor(const AttentionSpec& spec, const AttentionShape& shape)
      : d_(shape.head_dim),
        features_(random_features(spec, shape)),
        redraws_(spec.flag("redraw")),
        causal_(spec.flag("causal")),
        scale_(static_cast<float>(std::pow(static_cast<double>(d_), -0.25))) {}

  std::vector<KernelParameter> parameters() const override {
    return {{"omega", {features_, d_}, start_orthogonal(d_), false}};
  }
  int64_t features() const override { return features_; }
  double feature_flops() const override { return 2.0 * static_cast<double>(features_ * d_); }

  double prepare_flops() const override { return causal_ ? 0.0 : feature_flops(); }

  // c of the keys, then the directions that are drawn anew.
  int64_t context_floats() const override { return 1 + (redraws_ ? features_ * d_ : 0); }
  void prepare(const AttentionInput& in, int head, float* context, Arena& arena) const override {
    if (redraws_ && in.training) {
      redraw_orthogonal(in.dropout_key, in.layer, d_, {context + 1, static_cast<size_t>(features_ * d_)});
    }
    context[0] = 0.0f;
    if (causal_) return;
    constexpr int64_t kRows = 96;
    const Arena::Scope scope(arena);
    const Matrix u = arena.matrix(kRows, features_);
    float maxima[kRows];
    context[0] = -INFINITY;
    for (int64_t first = 0; first < in.k.rows; first += kRows) {
      const int64_t count = std::min(kRows, in.k.rows - first);
      project(omega(in, context), in.k.col_block(head * d_, d_).row_block(first, count), u.row_block(0, count));
      max_rows(u.row_block(0, count), maxima);
      context[0] = std::max(context[0], *std::max_element(maxima, maxima + count));
    }
  }

  void forward(const FeatureRows& rows, Matrix phi, Arena& arena) const override {
    float* shifts = arena.floats(phi.rows);
    project(omega(rows.in, rows.context), rows.x, phi);
    if (rows.keys) {
      std::fill_n(shifts, phi.rows, rows.context[0]);
    } else {
      max_rows(phi, shifts);
    }
    float* squares = arena.floats(phi.rows);
    dot_rows(rows.x, rows.x, squares);
    for (int64_t i = 0; i < phi.rows; ++i) shifts[i] += 0.5f * scale_ * scale_ * squares[i];
    exp_rows({.shifts = shifts, .offset = static_cast<float>(kEpsilon), .factor = norm()}, phi, phi);
  }

  // dy = sum_r e_r (w_r - y) with e_r = dphi_r (phi_r - 1e-4 / sqrt(M)).
  void backward(const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx, std::span<float* const>,
                Arena& arena) const override {
    const float offset = static_cast<float>(kEpsilon) * norm();
    float* sums = arena.floats(phi.rows);
    for (int64_t i = 0; i < phi.rows; ++i) {
      const float* f = phi.row(i);
      float *g = d_phi.row(i), sum = 0.0f;
      for (int64_t r = 0; r < features_; ++r) g[r] *= f[r] - offset;
      for (int64_t r = 0; r < features_; ++r) sum += g[r];
      sums[i] = sum;
    }
    scale_rows(-scale_ * scale_, sums, 1, rows.x, dx);
    matmul(d_phi, Transpose::kNo, omega(rows.in, rows.context), Transpose::kNo, dx, Write::kAdd, scale_);
  }

  Denominator denominator(float z, int64_t) const override {
    if (z == 0.0f) return {1.0f, 0.0f};
    return {z, 1.0f};
  }

 private:
  float norm() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(features_))); }
  ConstMatrix omega(const AttentionInput& in, const float* context) const {
    return {redraws_ && in.training ? context + 1 : in.parameters[0], features_, d_};
  }
  void project(ConstMatrix omega, ConstMatrix x, Matrix u) const {
    matmul(x, Transpose::kNo, omega, Transpose::kYes, u, Write::kOver, scale_);
  }

  int64_t d_, features_;
  bool redraws_, causal_;
  float scale_;
};

struct Projected {
  std::vector<ref::Row> u;  // w_r·y of each token
  ref::Row half_squares;    // |y|² / 2
};

Projected project(const ref::AttentionProblem& problem, const ref::Row& omega, int head, bool keys) {
  const int d = problem.shape.head_dim;
  Projected result;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    const double* x = (keys ? problem.k : problem.q).row(i) + head * d;
    const double scale = std::pow(static_cast<double>(d), -0.25);
    double square = 0.0;
    for (int c = 0; c < d; ++c) square += scale * x[c] * scale * x[c];
    result.half_squares.push_back(square / 2.0);
    ref::Row& u = result.u.emplace_back();
    for (size_t r = 0; r < omega.size() / d; ++r) {
      u.push_back(0.0);
      for (int c = 0; c < d; ++c) u.back() += omega[r * d + c] * scale * x[c];
    }
  }
  return result;
}

std::vector<ref::Row> favor_features(const ref::AttentionProblem& problem, int head, bool keys) {
  ref::Row omega = problem.parameters[0];
  if (problem.spec.flag("redraw") && problem.training) {
    std::vector<float> drawn(omega.size());
    redraw_orthogonal(problem.dropout_key, problem.layer, problem.shape.head_dim, drawn);
    omega.assign(drawn.begin(), drawn.end());
  }
  const auto top = [](const ref::Row& row) { return *std::max_element(row.begin(), row.end()); };
  const Projected projected = project(problem, omega, head, keys);
  const Projected constants = project(problem.for_constants(), omega, head, keys);
  double top_of_all = -INFINITY;
  for (const ref::Row& u : constants.u) top_of_all = std::max(top_of_all, top(u));
  if (problem.spec.flag("causal")) top_of_all = 0.0;
  std::vector<ref::Row> features = projected.u;
  for (size_t i = 0; i < features.size(); ++i) {
    const double c = keys ? top_of_all : top(constants.u[i]);
    for (double& f : features[i]) {
      f = (std::exp(f - projected.half_squares[i] - c) + kEpsilon) / std::sqrt(static_cast<double>(features[i].size()));
    }
  }
  return features;
}

}  // namespace

std::vector<AttentionFamily> favor_families() {
  return {{.name = "favor",
           .options = {random_features_option(),
                       {"redraw",
                        AttentionOption::Kind::kFlag,
                        "0",
                        {},
                        "draw the features anew at each training step; evaluation has the stored ones"}},
           .idea = "positive random features of exp(x), normalised",
           .source = "arXiv 2009.14794",
           .kind = "feature map",
           .cost = "none a score; M E a token",
           .linear = "own kernel",
           .ours = "maximum of the keys a head, none where causal; features fixed unless redraw=1",
           .causal = true,
           .jacobian = false,
           .validate = validate_random_features,
           .make =
               [](const AttentionSpec& spec, const AttentionShape& shape) {
                 return make_feature_map(spec, shape, std::make_unique<Favor>(spec, shape));
               },
           .reference = ref::kernelised(
               {favor_features, [](const ref::AttentionProblem&, double z, int64_t) { return z == 0.0 ? 1.0 : z; }}),
           .examples = {"favor", "favor:features=16", "favor:features=16,redraw=1", "favor:features=16,causal=1"}}};
}

}  // namespace lra
