// Features that need no products: linear-elu (arXiv 2006.16236), cosformer (2202.08791), and polynomial's powers 1 and
// 2, exactly.
#include <cmath>
#include <numbers>

#include "lib/device/feature_map.h"
#include "lib/device/length_factor.h"

namespace lra::device {
namespace {

class Elu final : public FeatureMap {
 public:
  Elu(const AttentionShape& shape, Denominator denominator) : d_(shape.head_dim), denominator_(denominator) {}

  int64_t features() const override { return d_; }
  Denominator denominator() const override { return denominator_; }
  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    const ConstMatrix x = rows.x;
    launch_each(c.device, phi.rows * phi.cols, [=] LRA_KERNEL(int64_t i) {
      const float value = x.data[i / phi.cols * x.stride + i % phi.cols];
      phi.data[i] = value > 0.0f ? value + 1.0f : std::exp(value);
    });
  }
  void backward(Context c, const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx,
                std::span<float* const>) const override {
    const ConstMatrix x = rows.x;
    launch_each(c.device, phi.rows * phi.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t row = i / phi.cols, column = i % phi.cols;
      const float slope = x.data[row * x.stride + column] > 0.0f ? 1.0f : phi.data[i];
      dx.data[row * dx.stride + column] = d_phi.data[i] * slope;
    });
  }

 private:
  int64_t d_;
  Denominator denominator_;
};

struct Turn {
  float sine, cosine;
};
LRA_KERNEL Turn turn_of(double unit, int32_t place) {
  const double angle = unit * (place + 1.0);
  return {static_cast<float>(std::sin(angle)), static_cast<float>(std::cos(angle))};
}

// relu(x) sin θ beside relu(x) cos θ, θ = π (place + 1) / (2 padded length).
class Cosformer final : public FeatureMap {
 public:
  explicit Cosformer(const AttentionShape& shape)
      : d_(shape.head_dim), unit_(std::numbers::pi / 2.0 / shape.padded_length) {}

  int64_t features() const override { return 2 * d_; }
  Denominator denominator() const override { return {Denominator::Form::kAtLeast, 1e-6f}; }
  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    const ConstMatrix x = rows.x;
    const int32_t* places = rows.call.batch.places + rows.group.first;
    const int64_t d = d_;
    const double unit = unit_;
    launch_each(c.device, x.rows * x.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t token = i / x.cols, head = i % x.cols / d, at = i % d;
      const float value = x.data[token * x.stride + i % x.cols], positive = value > 0.0f ? value : 0.0f;
      float* to = phi.data + token * phi.stride + head * 2 * d + at;
      const Turn turn = turn_of(unit, places[token]);
      to[0] = turn.sine * positive, to[d] = turn.cosine * positive;
    });
  }
  void backward(Context c, const FeatureRows& rows, ConstMatrix, Matrix d_phi, Matrix dx,
                std::span<float* const>) const override {
    const ConstMatrix x = rows.x;
    const int32_t* places = rows.call.batch.places + rows.group.first;
    const int64_t d = d_;
    const double unit = unit_;
    launch_each(c.device, x.rows * x.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t token = i / x.cols, head = i % x.cols / d, at = i % d;
      const float* g = d_phi.data + token * d_phi.stride + head * 2 * d + at;
      const Turn turn = turn_of(unit, places[token]);
      const bool positive = x.data[token * x.stride + i % x.cols] > 0.0f;
      dx.data[token * dx.stride + i % x.cols] = positive ? turn.sine * g[0] + turn.cosine * g[d] : 0.0f;
    });
  }

 private:
  int64_t d_;
  double unit_;
};

// What a kernel needs of the features below.
struct PowerForm {
  int power;
  bool keys;
  const float* gain;  // of queries, or null

  LRA_KERNEL static int64_t pair(int64_t i, int64_t j, int64_t d) { return i * d - i * (i + 1) / 2 + j; }
  LRA_KERNEL float weight(int64_t i, int64_t j) const { return keys || i == j ? 1.0f : 2.0f; }
  // Entry e of x, or of its square x_i x_j.
  LRA_KERNEL void write(const float* x, int64_t head, int64_t d, int64_t e, float* phi) const {
    const float factor = gain == nullptr ? 1.0f : gain[head];
    const int64_t i = e / d, j = e % d;
    if (power == 1) {
      phi[e] = factor * x[e];
    } else if (i <= j) {
      phi[pair(i, j, d)] = factor * weight(i, j) * x[i] * x[j];
    }
  }
  // Of Σ_f g_f φ_f by x_e, without the gain.
  LRA_KERNEL float slope(const float* x, int64_t d, int64_t e, const float* g) const {
    if (power == 1) return g[e];
    float sum = 2.0f * g[pair(e, e, d)] * x[e];
    for (int64_t i = 0; i < e; ++i) sum += weight(i, e) * g[pair(i, e, d)] * x[i];
    for (int64_t j = e + 1; j < d; ++j) sum += weight(e, j) * g[pair(e, j, d)] * x[j];
    return sum;
  }
};

// x itself, or x_i x_j for i <= j; queries' times the weight of a pair (2 where i < j), the gain, and the scale of the
// scores.
class Powers final : public FeatureMap {
 public:
  Powers(const AttentionShape& shape, int power, LengthFactor factor, bool learnt)
      : heads_(shape.heads), d_(shape.head_dim), power_(power), learnt_(learnt) {
    factor.factor *= static_cast<float>(std::pow(static_cast<double>(d_), -0.5 * power));
    denominator_ = {.form = Denominator::Form::kLength, .length = factor};
  }

  int64_t features() const override { return power_ == 1 ? d_ : d_ * (d_ + 1) / 2; }
  Denominator denominator() const override { return denominator_; }
  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    const ConstMatrix x = rows.x;
    const PowerForm form = form_of(rows);
    const int64_t d = d_, heads = heads_, count = features();
    launch(c.device, x.rows * heads, threads_for(count), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float* from = x.data + token * x.stride + head * d;
      float* to = phi.data + token * phi.stride + head * count;
      team.for_each(form.power == 1 ? d : d * d, [=](int64_t e) { form.write(from, head, d, e, to); });
    });
  }
  void backward(Context c, const FeatureRows& rows, ConstMatrix, Matrix d_phi, Matrix dx,
                std::span<float* const> d_parameters) const override {
    const Scratch::Scope scope(c.scratch);
    const ConstMatrix x = rows.x;
    const PowerForm form = form_of(rows);
    const int64_t d = d_, heads = heads_, count = features();
    const bool with_gain = form.gain != nullptr && d_parameters[0] != nullptr;
    const Matrix d_gain = c.scratch.matrix(x.rows, heads);
    launch(c.device, x.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float* from = x.data + token * x.stride + head * d;
      const float* g = d_phi.data + token * d_phi.stride + head * count;
      float* to = dx.data + token * dx.stride + head * d;
      // Of Σ_f g_f φ_f without the gain by x_e; its sum with x is the power times that.
      const float sum = team.sum(d, [=](int64_t e) { return form.slope(from, d, e, g) * from[e]; });
      const float factor = form.gain == nullptr ? 1.0f : form.gain[head];
      team.for_each(d, [=](int64_t e) { to[e] = factor * form.slope(from, d, e, g); });
      team.for_each(1, [=](int64_t) { d_gain.data[team.block()] = sum / static_cast<float>(form.power); });
    });
    if (with_gain) add_column_sums(c, d_gain, d_parameters[0]);
  }

 private:
  PowerForm form_of(const FeatureRows& rows) const {
    return {power_, rows.keys, learnt_ && !rows.keys ? rows.call.parameters[0] : nullptr};
  }

  int64_t heads_, d_;
  int power_;
  bool learnt_;
  Denominator denominator_;
};

}  // namespace

std::unique_ptr<FeatureMap> elu_features(const AttentionShape& shape, Denominator denominator) {
  return std::make_unique<Elu>(shape, denominator);
}
std::unique_ptr<FeatureMap> cosformer_features(const AttentionShape& shape) {
  return std::make_unique<Cosformer>(shape);
}
std::unique_ptr<FeatureMap> power_features(const AttentionShape& shape, int power, LengthFactor factor, bool learnt) {
  return std::make_unique<Powers>(shape, power, factor, learnt);
}

}  // namespace lra::device
