// Linear log-normal attention (Nahshan et al. 2023, arXiv 2311.13541): phi = exp(α q - max), psi = exp(β k - max), α
// and β such that log-weights vary as much as those of softmax: with variances v_q, v_k of the entries of the head, α²
// = w / v_q, β² = w / v_k, w = (v_q v_k + 0.35487039) / (2 · 0.14855178). They and the maxima, of a query and of all
// keys, are constants in the backward pass.
#include "lib/attention/lln.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_map.h"
#include "lib/attention/feature_rows.h"

namespace lra {
namespace {

constexpr double kEpsilon = 1e-8;
constexpr double kLeastVariance = 1e-12;

struct Exponents {
  double alpha, beta;
};

Exponents exponents(double query_variance, double key_variance) {
  const double q = std::max(query_variance, kLeastVariance), k = std::max(key_variance, kLeastVariance);
  const double wanted = (q * k + 0.35487039) / (2.0 * 0.14855178);
  return {std::sqrt(wanted / q), std::sqrt(wanted / k)};
}

// Of all entries, divisor one less than their number.
template <class T>
double variance(MatrixView<const T> x) {
  const double count = std::max(static_cast<double>(x.rows * x.cols), 2.0);
  double mean = 0.0, squares = 0.0;
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) mean += x.row(i)[c];
  }
  mean /= count;
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) squares += (x.row(i)[c] - mean) * (x.row(i)[c] - mean);
  }
  return squares / (count - 1.0);
}

class Lln final : public FeatureMap {
 public:
  explicit Lln(const AttentionShape& shape) : d_(shape.head_dim) {}

  int64_t features() const override { return d_; }

  int64_t context_floats() const override { return 3; }
  void prepare(const AttentionInput& in, int head, float* context, Arena&) const override {
    const ConstMatrix k = in.k.col_block(head * d_, d_);
    const Exponents e = exponents(variance(in.q.col_block(head * d_, d_)), variance(k));
    context[kAlpha] = static_cast<float>(e.alpha), context[kBeta] = static_cast<float>(e.beta);
    float top = k.row(0)[0];
    for (int64_t i = 0; i < k.rows; ++i) top = std::max(top, *std::max_element(k.row(i), k.row(i) + d_));
    context[kTopKey] = context[kBeta] * top;
  }

  void forward(const FeatureRows& rows, Matrix phi, Arena& arena) const override {
    if (rows.keys) {
      exp_rows({.scale = rows.context[kBeta], .shifts = rows.context + kTopKey, .step = 0}, rows.x, phi);
      return;
    }
    float* shifts = arena.floats(phi.rows);
    max_rows(rows.x, shifts);
    for (int64_t i = 0; i < phi.rows; ++i) shifts[i] *= rows.context[kAlpha];
    exp_rows({.scale = rows.context[kAlpha], .shifts = shifts}, rows.x, phi);
  }

  void backward(const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx, std::span<float* const>,
                Arena&) const override {
    const float scale = rows.context[rows.keys ? kBeta : kAlpha];
    for (int64_t i = 0; i < dx.rows; ++i) {
      const float *f = phi.row(i), *g = d_phi.row(i);
      for (int64_t c = 0; c < d_; ++c) dx.row(i)[c] = scale * f[c] * g[c];
    }
  }

  Denominator denominator(float z, int64_t) const override { return {z + static_cast<float>(kEpsilon), 1.0f}; }

 private:
  enum Context { kAlpha, kBeta, kTopKey };

  int64_t d_;
};

std::vector<ref::Row> lln_features(const ref::AttentionProblem& problem, int head, bool keys) {
  const int64_t d = problem.shape.head_dim;
  const ref::AttentionProblem& fixed = problem.for_constants();
  const Exponents both = exponents(variance(fixed.q.col_block(head * d, d)), variance(fixed.k.col_block(head * d, d)));
  const double exponent = keys ? both.beta : both.alpha;
  const MatrixView<const double> constants = (keys ? fixed.k : fixed.q).col_block(head * d, d);
  const auto top = [&](int64_t row) { return *std::max_element(constants.row(row), constants.row(row) + d); };
  double top_of_all = -INFINITY;
  for (int64_t i = 0; i < problem.tokens(); ++i) top_of_all = std::max(top_of_all, top(i));
  std::vector<ref::Row> features;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    ref::Row& row = features.emplace_back();
    for (int64_t c = head * d; c < (head + 1) * d; ++c) {
      const double x = (keys ? problem.k : problem.q).row(i)[c];
      row.push_back(std::exp(exponent * (x - (keys ? top_of_all : top(i)))));
    }
  }
  return features;
}

const ref::KernelisedAttention& lln_reference() {
  static const ref::KernelisedAttention reference = {
      lln_features, [](const ref::AttentionProblem&, double z, int64_t) { return z + kEpsilon; }};
  return reference;
}

}  // namespace

std::unique_ptr<AttentionKernel> make_lln(const AttentionSpec& spec, const AttentionShape& shape) {
  return make_feature_map(spec, shape, std::make_unique<Lln>(shape));
}

namespace ref {
std::vector<Row> lln_weights(const AttentionProblem& problem, int head) {
  return kernelised_weights(lln_reference(), problem, head);
}
}  // namespace ref

std::vector<AttentionFamily> lln_families() {
  return {{.name = "lln",
           .idea = "exp(α q)·exp(β k) / (Σ + 1e-8), α and β from the deviations of q and k",
           .source = "arXiv 2311.13541",
           .kind = "feature map",
           .cost = "none a score; D E a token",
           .linear = "exact",
           .ours = "deviations of a head and sequence; the source has those of the batch",
           .jacobian = false,
           .make = make_lln,
           .reference = ref::kernelised(lln_reference()),
           .examples = {"lln", "lln+xsa"}}};
}

}  // namespace lra
