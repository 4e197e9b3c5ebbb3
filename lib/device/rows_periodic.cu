// Periodic families (arXiv 2108.07153): P = a(x) / Σ a(x), |Σ| at least 1e-3 n, or softmax(sin x); `norm-`: of the
// standardised row, y = (x - mean) / √(var + 1e-5), var with divisor n - 1.
#include "lib/device/families.h"
#include "lib/device/score_rows.h"
#include "lib/device/softmax_row.h"

namespace lra::device {
namespace {

struct Periodic {
  static constexpr int kNumbers = 0;
  WaveMap<float> wave;  // of sin-softmax the sine
  bool softmax, standardised;

  // A row's numbers: y = (x - mean) r; weights a(y) / z, or exp(sin y - max) / z.
  struct Row {
    WaveMap<float> f;
    bool softmax;
    float mean, r, max, z;
    float t;  // Σ p g, 0 where z was held

    LRA_KERNEL float y(float x) const { return (x - mean) * r; }
    LRA_KERNEL float weight(float x) const { return (softmax ? std::exp(f.value(y(x)) - max) : f.value(y(x))) / z; }
    // dL/dy.
    LRA_KERNEL float pull(float x, float g) const {
      const float slope = f.slope(y(x));
      return (softmax ? weight(x) * slope : slope / z) * (g - t);
    }
  };

  Periodic bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL Row at(const Team& team, const ScoreRow& row, const float* s) const {
    const float n = static_cast<float>(row.n);
    Row a{wave, softmax, 0.0f, 1.0f, 0.0f, 1.0f, 0.0f};
    if (standardised) {
      const float mean = team.sum(row.n, [=](int64_t j) { return s[j]; }) / n;
      const float squares = team.sum(row.n, [=](int64_t j) { return (s[j] - mean) * (s[j] - mean); });
      a.mean = mean, a.r = 1.0f / std::sqrt(squares / (n > 1.0f ? n - 1.0f : 1.0f) + 1e-5f);
    }
    const Row y = a;
    if (softmax) {
      const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return y.f.value(y.y(s[j])); });
      a.max = p.max, a.z = p.sum;
    } else {
      const float z = team.sum(row.n, [=](int64_t j) { return y.f.value(y.y(s[j])); }), least = 1e-3f * n;
      a.z = std::abs(z) >= least ? z : z < 0.0f ? -least : least;
    }
    return a;
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row a = at(team, row, s);
    team.for_each(row.n, [=](int64_t j) { s[j] = a.weight(s[j]); });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    Row a = at(team, row, s);
    const Row plain = a;
    const float least = 1e-3f * static_cast<float>(row.n);
    if (softmax || std::abs(a.z) > least) {
      a.t = team.sum(row.n, [=](int64_t j) { return plain.weight(s[j]) * g[j]; });
    }
    const Row b = a;
    float mean_d = 0.0f, along = 0.0f;  // mean dy; Σ dy y / (n - 1)
    if (standardised) {
      const float n = static_cast<float>(row.n);
      mean_d = team.sum(row.n, [=](int64_t j) { return b.pull(s[j], g[j]); }) / n;
      along = team.sum(row.n, [=](int64_t j) { return b.pull(s[j], g[j]) * b.y(s[j]); }) / (n > 1.0f ? n - 1.0f : 1.0f);
    }
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j];
      g[j] = b.r * (b.pull(x, g[j]) - mean_d - b.y(x) * along);
      s[j] = b.weight(x);
    });
  }
};

}  // namespace

std::unique_ptr<ScoreRows> periodic_rows(WaveMap<float> wave, bool softmax, bool standardised) {
  return mapped_rows(Periodic{wave, softmax, standardised});
}

}  // namespace lra::device
