// Exponential features: lln (arXiv 2311.13541), exp(α q - max) and exp(β k - max), and favor (2009.14794),
// (exp(w·y - |y|² / 2 - c) + 1e-4) / sqrt(M), y = x / D^(1/4).
#include <cmath>
#include <vector>

#include "lib/attention/random_features.h"
#include "lib/device/feature_map.h"
#include "lib/device/team.h"

namespace lra::device {
namespace {

// Of lib/attention/lln.cpp.
constexpr double kLeastVariance = 1e-12;

class Lln final : public FeatureMap {
 public:
  explicit Lln(const AttentionShape& shape) : heads_(shape.heads), d_(shape.head_dim) {}

  int64_t features() const override { return d_; }
  Denominator denominator() const override { return {Denominator::Form::kPlus, 1e-8f}; }

  // α, β, and β times the largest number of the keys.
  int64_t context_width() const override { return 3; }
  void prepare(Context c, const AttentionCall& call, const SequenceGroup& group, float* context) const override {
    const ConstMatrix q = call.q, k = call.k;
    const int64_t* sequence_first = call.batch.sequence_first + group.begin;
    const int64_t heads = heads_, d = d_;
    launch(c.device, group.count * heads, threads_for(d * 64), [=] LRA_KERNEL(Team & team) {
      const int64_t s = team.block() / heads, head = team.block() % heads;
      const int64_t first = sequence_first[s], n = sequence_first[s + 1] - first;
      float* to = context + team.block() * 3;
      const auto variance = [=](ConstMatrix x) {
        const float* data = x.data + first * x.stride + head * d;
        const double count = n * d < 2 ? 2.0 : static_cast<double>(n * d);
        const double mean =
            team.sum(n * d, [=](int64_t i) { return static_cast<double>(data[i / d * x.stride + i % d]); }) / count;
        const double squares = team.sum(n * d, [=](int64_t i) {
          const double apart = data[i / d * x.stride + i % d] - mean;
          return apart * apart;
        });
        const double of_all = squares / (count - 1.0);
        return of_all < kLeastVariance ? kLeastVariance : of_all;
      };
      const double of_q = variance(q), of_k = variance(k);
      const double wanted = (of_q * of_k + 0.35487039) / (2.0 * 0.14855178);
      const float* keys = k.data + first * k.stride + head * d;
      const float top = team.max(n * d, [=](int64_t i) { return keys[i / d * k.stride + i % d]; });
      team.for_each(1, [=](int64_t) {
        to[0] = static_cast<float>(std::sqrt(wanted / of_q)), to[1] = static_cast<float>(std::sqrt(wanted / of_k));
        to[2] = to[1] * top;
      });
    });
  }

  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    const ConstMatrix x = rows.x;
    const float* context = rows.context;
    const int32_t* sequence = rows.call.batch.sequence + rows.group.first;
    const int64_t heads = heads_, d = d_, begin = rows.group.begin;
    const bool keys = rows.keys;
    launch(c.device, x.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float* from = x.data + token * x.stride + head * d;
      const float* of = context + ((sequence[token] - begin) * heads + head) * 3;
      float* to = phi.data + token * phi.stride + head * d;
      const float scale = keys ? of[1] : of[0];
      const float shift = keys ? of[2] : scale * team.max(d, [=](int64_t e) { return from[e]; });
      team.for_each(d, [=](int64_t e) { to[e] = std::exp(scale * from[e] - shift); });
    });
  }
  void backward(Context c, const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx,
                std::span<float* const>) const override {
    const float* context = rows.context;
    const int32_t* sequence = rows.call.batch.sequence + rows.group.first;
    const int64_t heads = heads_, d = d_, begin = rows.group.begin, number = rows.keys ? 1 : 0;
    launch_each(c.device, phi.rows * phi.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t token = i / phi.cols, head = i % phi.cols / d;
      const float scale = context[((sequence[token] - begin) * heads + head) * 3 + number];
      dx.data[token * dx.stride + i % phi.cols] = scale * phi.data[i] * d_phi.data[i];
    });
  }

 private:
  int64_t heads_, d_;
};

class Favor final : public FeatureMap {
 public:
  Favor(const AttentionSpec& spec, const AttentionShape& shape)
      : heads_(shape.heads),
        d_(shape.head_dim),
        count_(random_features(spec, shape)),
        redraws_(spec.flag("redraw")),
        causal_(spec.flag("causal")),
        scale_(static_cast<float>(std::pow(static_cast<double>(d_), -0.25))),
        norm_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(count_)))) {}

  int64_t features() const override { return count_; }
  Denominator denominator() const override { return {Denominator::Form::kNotZero}; }

  // c of the keys.
  int64_t context_width() const override { return 1; }
  void prepare(Context c, const AttentionCall& call, const SequenceGroup& group, float* context) const override {
    if (causal_) return c.device.fill_zero({context, group.count, heads_});
    const Scratch::Scope scope(c.scratch);
    const Matrix u = c.scratch.matrix(group.tokens, heads_ * count_);
    project(c, call, call.k.row_block(group.first, group.tokens), u);
    const int64_t* sequence_first = call.batch.sequence_first + group.begin;
    const int64_t heads = heads_, count = count_, first_row = group.first;
    launch(c.device, group.count * heads, threads_for(count * 64), [=] LRA_KERNEL(Team & team) {
      const int64_t s = team.block() / heads, head = team.block() % heads;
      const int64_t first = sequence_first[s] - first_row, n = sequence_first[s + 1] - sequence_first[s];
      const float* data = u.data + first * u.stride + head * count;
      const float top = team.max(n * count, [=](int64_t i) { return data[i / count * u.stride + i % count]; });
      team.for_each(1, [=](int64_t) { context[team.block()] = top; });
    });
  }

  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    project(c, rows.call, rows.x, phi);
    const ConstMatrix x = rows.x;
    const float* context = rows.context;
    const int32_t* sequence = rows.call.batch.sequence + rows.group.first;
    const int64_t heads = heads_, d = d_, count = count_, begin = rows.group.begin;
    const bool keys = rows.keys;
    const float square_scale = 0.5f * scale_ * scale_, norm = norm_;
    launch(c.device, x.rows * heads, threads_for(count), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float* from = x.data + token * x.stride + head * d;
      float* u = phi.data + token * phi.stride + head * count;
      const float half = square_scale * team.sum(d, [=](int64_t e) { return from[e] * from[e]; });
      const float top =
          keys ? context[(sequence[token] - begin) * heads + head] : team.max(count, [=](int64_t r) { return u[r]; });
      team.for_each(count, [=](int64_t r) { u[r] = norm * (std::exp(u[r] - (half + top)) + kEpsilon); });
    });
  }

  // dy = Σ_r e_r (w_r - y), e_r = dphi_r (phi_r - 1e-4 / sqrt(M)).
  void backward(Context c, const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx,
                std::span<float* const>) const override {
    const ConstMatrix x = rows.x;
    const int64_t heads = heads_, d = d_, count = count_;
    const float offset = kEpsilon * norm_, square_scale = scale_ * scale_;
    launch(c.device, x.rows * heads, threads_for(count), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float *from = x.data + token * x.stride + head * d, *f = phi.data + token * phi.stride + head * count;
      float *g = d_phi.data + token * d_phi.stride + head * count, *to = dx.data + token * dx.stride + head * d;
      team.for_each(count, [=](int64_t r) { g[r] *= f[r] - offset; });
      const float sum = team.sum(count, [=](int64_t r) { return g[r]; });
      team.for_each(d, [=](int64_t e) { to[e] = -square_scale * sum * from[e]; });
    });
    const Scratch::Scope scope(c.scratch);
    c.device.multiply(by_head(heads_, d_phi, count_, omega(c, rows.call), Transpose::kNo, 0, dx, d_, scale_, 1.0f));
  }

 private:
  static constexpr float kEpsilon = 1e-4f;

  // Drawn on the host where each step has its own: a function of the step's key, D ln D rows of D numbers.
  ConstMatrix omega(Context c, const AttentionCall& call) const {
    if (!redraws_ || !call.training) return {call.parameters[0], count_, d_};
    std::vector<float> drawn(static_cast<size_t>(count_ * d_));
    redraw_orthogonal(call.dropout_key, call.layer, d_, drawn);
    return {c.scratch.upload(std::span<const float>(drawn)), count_, d_};
  }
  void project(Context c, const AttentionCall& call, ConstMatrix x, Matrix u) const {
    const Scratch::Scope scope(c.scratch);
    c.device.multiply(by_head(heads_, x, d_, omega(c, call), Transpose::kYes, 0, u, count_, scale_));
  }

  int64_t heads_, d_, count_;
  bool redraws_, causal_;
  float scale_, norm_;
};

}  // namespace

std::unique_ptr<FeatureMap> lln_features(const AttentionShape& shape) { return std::make_unique<Lln>(shape); }
std::unique_ptr<FeatureMap> favor_features(const AttentionSpec& spec, const AttentionShape& shape) {
  return std::make_unique<Favor>(spec, shape);
}

}  // namespace lra::device
