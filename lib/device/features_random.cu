// Random features of signs and waves: rfa (arXiv 2103.02143), hrf (2110.04367), rmfa (2408.11656). Formulas: the files
// of those names in lib/attention.
#include <cmath>

#include "lib/attention/random_features.h"
#include "lib/device/feature_map.h"
#include "lib/device/team.h"

namespace lra::device {
namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;
constexpr Denominator kAwayFromZero = {Denominator::Form::kAwayFromZero, 1e-3f};

class Rfa final : public FeatureMap {
 public:
  Rfa(const AttentionSpec& spec, const AttentionShape& shape)
      : heads_(shape.heads),
        d_(shape.head_dim),
        count_(random_features(spec, shape)),
        norm_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(count_)))) {}

  int64_t features() const override { return 2 * count_; }
  Denominator denominator() const override { return kAwayFromZero; }

  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    const Scratch::Scope scope(c.scratch);
    const ConstMatrix x = rows.x;
    const Matrix y = c.scratch.matrix(x.rows, x.cols), u = c.scratch.matrix(x.rows, heads_ * count_);
    const float* scale = rows.call.parameters[1];
    const int64_t heads = heads_, d = d_, count = count_;
    launch(c.device, x.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float* from = x.data + token * x.stride + head * d;
      float* to = y.data + token * y.stride + head * d;
      const float length = length_of(team, from, d);
      team.for_each(d, [=](int64_t e) { to[e] = scale[head * d + e] * (from[e] / length); });
    });
    c.device.multiply(by_head(heads_, y, d_, omega(rows), kYes, count_ * d_, u, count_));
    const float norm = norm_;
    launch_each(c.device, u.rows * u.cols, [=] LRA_KERNEL(int64_t i) {
      float* to = phi.data + i / u.cols * phi.stride + i % u.cols / count * 2 * count + i % count;
      to[0] = norm * std::sin(u.data[i]), to[count] = norm * std::cos(u.data[i]);
    });
  }

  void backward(Context c, const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx,
                std::span<float* const> d_parameters) const override {
    const Scratch::Scope scope(c.scratch);
    const ConstMatrix x = rows.x;
    const Matrix du = c.scratch.matrix(x.rows, heads_ * count_), dy = c.scratch.matrix(x.rows, x.cols);
    const Matrix d_scale = c.scratch.matrix(x.rows, x.cols);
    const float* scale = rows.call.parameters[1];
    const int64_t heads = heads_, d = d_, count = count_;
    launch_each(c.device, du.rows * du.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t at = i / du.cols * phi.stride + i % du.cols / count * 2 * count + i % count;
      du.data[i] = d_phi.data[at] * phi.data[at + count] - d_phi.data[at + count] * phi.data[at];
    });
    c.device.multiply(by_head(heads_, du, count_, omega(rows), kNo, count_ * d_, dy, d_));
    launch(c.device, x.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float *from = x.data + token * x.stride + head * d, *g = dy.data + token * dy.stride + head * d;
      const float* of = scale + head * d;
      float *to = dx.data + token * dx.stride + head * d, *to_scale = d_scale.data + token * d_scale.stride + head * d;
      const float length = length_of(team, from, d);
      const float along = team.sum(d, [=](int64_t e) { return from[e] / length * g[e] * of[e]; });
      const float kept = length > kShortest ? along : 0.0f;
      team.for_each(d, [=](int64_t e) {
        const float unit = from[e] / length;
        to_scale[e] = unit * g[e];
        to[e] = (g[e] * of[e] - kept * unit) / length;
      });
    });
    if (d_parameters[1] != nullptr) add_column_sums(c, d_scale, d_parameters[1]);
  }

 private:
  static constexpr float kShortest = 1e-12f;

  LRA_KERNEL static float length_of(const Team& team, const float* x, int64_t d) {
    const float length = std::sqrt(team.sum(d, [=](int64_t e) { return x[e] * x[e]; }));
    return length < kShortest ? kShortest : length;
  }
  ConstMatrix omega(const FeatureRows& rows) const { return {rows.call.parameters[0], count_, d_}; }

  int64_t heads_, d_, count_;
  float norm_;
};

// b(x) = [exp(u - h), exp(h) cos u, exp(h) sin u] / sqrt(2M), and R copies of it times sgn(t_r·x) / sqrt(R), those of
// the keys' first M numbers negative.
class Hrf final : public FeatureMap {
 public:
  Hrf(const AttentionSpec& spec, const AttentionShape& shape)
      : heads_(shape.heads),
        d_(shape.head_dim),
        count_(random_features(spec, shape)),
        angles_(spec.integer("angles")),
        scale_(static_cast<float>(std::pow(static_cast<double>(d_), -0.25))) {}

  int64_t features() const override { return 3 * count_ * (angles_ + 1); }
  Denominator denominator() const override { return kAwayFromZero; }

  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    const Scratch::Scope scope(c.scratch);
    const ConstMatrix x = rows.x;
    const Matrix u = c.scratch.matrix(x.rows, heads_ * count_), t = c.scratch.matrix(x.rows, heads_ * angles_);
    c.device.multiply(by_head(heads_, x, d_, omega(rows), kYes, 0, u, count_, scale_));
    c.device.multiply(by_head(heads_, x, d_, tau(rows), kYes, 0, t, angles_));
    const int64_t heads = heads_, d = d_, count = count_, angles = angles_, base = 3 * count_, all = features();
    const auto norm = static_cast<float>(1.0 / std::sqrt(2.0 * static_cast<double>(count_)));
    const float square_scale = 0.5f * scale_ * scale_, unit = unit_of_signs();
    const bool keys = rows.keys;
    launch(c.device, x.rows * heads, threads_for(all), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float *from = x.data + token * x.stride + head * d, *of_u = u.data + team.block() * count;
      const float* of_t = t.data + team.block() * angles;
      float* to = phi.data + token * phi.stride + head * all;
      const float half = square_scale * team.sum(d, [=](int64_t e) { return from[e] * from[e]; });
      const float growth = norm * std::exp(half);
      team.for_each(count, [=](int64_t r) {
        to[r] = norm * std::exp(of_u[r] - half);
        to[count + r] = growth * std::cos(of_u[r]);
        to[2 * count + r] = growth * std::sin(of_u[r]);
      });
      team.for_each(angles * base, [=](int64_t i) {
        to[base + i] = sign(of_t[i / base], unit, keys && i % base < count) * to[i % base];
      });
    });
  }

  void backward(Context c, const FeatureRows& rows, ConstMatrix phi, Matrix d_phi, Matrix dx,
                std::span<float* const>) const override {
    const Scratch::Scope scope(c.scratch);
    const ConstMatrix x = rows.x;
    const Matrix du = c.scratch.matrix(x.rows, heads_ * count_), t = c.scratch.matrix(x.rows, heads_ * angles_);
    c.device.multiply(by_head(heads_, x, d_, tau(rows), kYes, 0, t, angles_));
    const int64_t heads = heads_, d = d_, count = count_, angles = angles_, base = 3 * count_, all = features();
    const float square_scale = scale_ * scale_, unit = unit_of_signs();
    const bool keys = rows.keys;
    launch(c.device, x.rows * heads, threads_for(base), [=] LRA_KERNEL(Team & team) {
      const int64_t token = team.block() / heads, head = team.block() % heads;
      const float *from = x.data + token * x.stride + head * d, *f = phi.data + token * phi.stride + head * all;
      const float* of_t = t.data + team.block() * angles;
      float *g = d_phi.data + token * d_phi.stride + head * all, *to = dx.data + token * dx.stride + head * d;
      float* to_u = du.data + team.block() * count;
      team.for_each(base, [=](int64_t i) {
        for (int64_t r = 0; r < angles; ++r) g[i] += sign(of_t[r], unit, keys && i < count) * g[base * (r + 1) + i];
      });
      const float d_half = team.sum(count, [=](int64_t r) {
        return g[count + r] * f[count + r] + g[2 * count + r] * f[2 * count + r] - g[r] * f[r];
      });
      team.for_each(count, [=](int64_t r) {
        to_u[r] = g[r] * f[r] + g[2 * count + r] * f[count + r] - g[count + r] * f[2 * count + r];
      });
      team.for_each(d, [=](int64_t e) { to[e] = square_scale * d_half * from[e]; });
    });
    c.device.multiply(by_head(heads_, du, count_, omega(rows), kNo, 0, dx, d_, scale_, 1.0f));
  }

 private:
  LRA_KERNEL static float sign(float t, float unit, bool negative) {
    const float value = t > 0.0f ? unit : t < 0.0f ? -unit : 0.0f;
    return negative ? -value : value;
  }
  float unit_of_signs() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(angles_))); }
  ConstMatrix omega(const FeatureRows& rows) const { return {rows.call.parameters[0], count_, d_}; }
  ConstMatrix tau(const FeatureRows& rows) const { return {rows.call.parameters[1], angles_, d_}; }

  int64_t heads_, d_, count_, angles_;
  float scale_;
};

constexpr int kDegrees = 10;  // the largest of rmfa

struct Coefficients {
  float of[kDegrees + 1];
};

// Products with all directions there are, of which a feature takes its degree's: degrees lie on the device.
class Rmfa final : public FeatureMap {
 public:
  Rmfa(const AttentionSpec& spec, const AttentionShape& shape)
      : heads_(shape.heads),
        d_(shape.head_dim),
        count_(random_features(spec, shape)),
        scale_(static_cast<float>(std::pow(static_cast<double>(d_), -0.25))) {
    for (int t = 0; t <= kDegrees; ++t) {
      coefficients_.of[t] =
          static_cast<float>(std::sqrt(std::pow(2.0, t + 1) / std::tgamma(t + 1.0) / static_cast<double>(count_)));
    }
  }

  int64_t features() const override { return count_; }
  Denominator denominator() const override { return kAwayFromZero; }

  void forward(Context c, const FeatureRows& rows, Matrix phi) const override {
    const Scratch::Scope scope(c.scratch);
    const Matrix u = factors(c, rows);
    const float* degree = rows.call.parameters[0];
    const Coefficients coefficients = coefficients_;
    const int64_t count = count_;
    launch_each(c.device, phi.rows * phi.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t f = i % count;
      const float* factor = u.data + i / count * kDegrees * count + f;
      const int t = degree_of(degree[f]);
      float product = coefficients.of[t];
      for (int r = 0; r < t; ++r) product *= factor[r * count];
      phi.data[i / phi.cols * phi.stride + i % phi.cols] = product;
    });
  }

  // The gradient of a factor is the product of the others.
  void backward(Context c, const FeatureRows& rows, ConstMatrix, Matrix d_phi, Matrix dx,
                std::span<float* const>) const override {
    const Scratch::Scope scope(c.scratch);
    const Matrix u = factors(c, rows);
    const float* degree = rows.call.parameters[0];
    const Coefficients coefficients = coefficients_;
    const int64_t count = count_;
    launch_each(c.device, d_phi.rows * d_phi.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t f = i % count;
      float* factor = u.data + i / count * kDegrees * count + f;
      const int t = degree_of(degree[f]);
      float behind[kDegrees + 1];
      behind[t] = 1.0f;
      for (int r = t; r > 0; --r) behind[r - 1] = behind[r] * factor[(r - 1) * count];
      float before = coefficients.of[t] * d_phi.data[i / d_phi.cols * d_phi.stride + i % d_phi.cols];
      for (int r = 0; r < kDegrees; ++r) {
        const float own = factor[r * count];
        factor[r * count] = r < t ? before * behind[r + 1] : 0.0f;
        before *= own;
      }
    });
    c.device.multiply(by_head(heads_, u, kDegrees * count_, directions(rows), kNo, 0, dx, d_, scale_));
  }

 private:
  LRA_KERNEL static int degree_of(float stored) {
    const int t = static_cast<int>(stored);
    return t < 0 ? 0 : t > kDegrees ? kDegrees : t;
  }
  ConstMatrix directions(const FeatureRows& rows) const { return {rows.call.parameters[1], kDegrees * count_, d_}; }
  // (tokens, H * 10 * F)
  Matrix factors(Context c, const FeatureRows& rows) const {
    const Matrix u = c.scratch.matrix(rows.x.rows, heads_ * kDegrees * count_);
    c.device.multiply(by_head(heads_, rows.x, d_, directions(rows), kYes, 0, u, kDegrees * count_, scale_));
    return u;
  }

  int64_t heads_, d_, count_;
  float scale_;
  Coefficients coefficients_;
};

}  // namespace

std::unique_ptr<FeatureMap> rfa_features(const AttentionSpec& spec, const AttentionShape& shape) {
  return std::make_unique<Rfa>(spec, shape);
}
std::unique_ptr<FeatureMap> hrf_features(const AttentionSpec& spec, const AttentionShape& shape) {
  return std::make_unique<Hrf>(spec, shape);
}
std::unique_ptr<FeatureMap> rmfa_features(const AttentionSpec& spec, const AttentionShape& shape) {
  return std::make_unique<Rmfa>(spec, shape);
}

}  // namespace lra::device
