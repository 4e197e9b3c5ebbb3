// Families around softmax: softpick (arXiv 2504.20966), adaptive-temp (2410.01104), sa-softmax and sa-softmax-norm
// (2502.18277).
#include "lib/device/families.h"
#include "lib/device/score_rows.h"
#include "lib/device/softmax_row.h"

namespace lra::device {
namespace {

// relu(e^x - 1) / (Σ |e^x - 1| + ε), everything times e^-m, m = max(0, max x).
struct Softpick {
  static constexpr int kNumbers = 0;

  struct Row {
    float max, sum;

    LRA_KERNEL float numerator(float x) const {
      return x > 1.0f ? std::exp(x - max) - std::exp(-max) : std::exp(-max) * std::expm1(x);
    }
    LRA_KERNEL float weight(float x) const { return x > 0.0f ? numerator(x) / sum : 0.0f; }
  };

  Softpick bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL static Row at(const Team& team, const ScoreRow& row, const float* s) {
    const float max = team.max(row.n + 1, [=](int64_t j) { return j < row.n ? s[j] : 0.0f; });
    const Row unscaled{max, 1.0f};
    return {max, 1e-8f + team.sum(row.n, [=](int64_t j) { return std::abs(unscaled.numerator(s[j])); })};
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row p = at(team, row, s);
    team.for_each(row.n, [=](int64_t j) { s[j] = p.weight(s[j]); });
  }
  // dx = e^x / D (1[x > 0] g - sign(x) t), t = Σ p g.
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    const Row p = at(team, row, s);
    const float t = team.sum(row.n, [=](int64_t j) { return p.weight(s[j]) * g[j]; });
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j], along = x > 0.0f ? g[j] - t : x < 0.0f ? t : 0.0f;
      g[j] = std::exp(x - p.max) / p.sum * along;
      s[j] = p.weight(x);
    });
  }
};

// softmax(β x), β a polynomial of the entropy H of softmax(x) where that is above 1 and H above 0.5.
struct Adaptive {
  static constexpr int kNumbers = 0;
  bool in_training, full_gradient, clamp;

  struct Temperature {
    float beta = 1.0f, slope = 0.0f;  // dβ/dH
    float entropy = 0.0f;
    SoftmaxRow plain{0.0f, 1.0f};
  };

  Adaptive bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL Temperature temperature(const Team& team, const ScoreRow& row, const float* s) const {
    Temperature t;
    if (row.training && !in_training) return t;
    t.plain = SoftmaxRow::of(team, row.n, [=](int64_t j) { return s[j]; });
    const SoftmaxRow plain = t.plain;
    const float log_sum = std::log(plain.sum);
    t.entropy = -team.sum(row.n, [=](int64_t j) { return plain.weight(s[j]) * (s[j] - plain.max - log_sum); });
    const bool clamped = clamp && t.entropy > 4.4f;
    const float h = clamped ? 4.4f : t.entropy;
    const float beta = (((-0.037f * h + 0.481f) * h - 2.3f) * h + 4.917f) * h - 1.791f;
    if (h <= 0.5f || beta <= 1.0f) return t;
    t.beta = beta;
    if (!clamped) t.slope = ((-0.148f * h + 1.443f) * h - 4.6f) * h + 4.917f;
    return t;
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const float beta = temperature(team, row, s).beta;
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return beta * s[j]; });
    team.for_each(row.n, [=](int64_t j) { s[j] = p.weight(beta * s[j]); });
  }
  // dx = β dz, and through β: Σ dz x β'(H) dH/dx_j, dH/dx_j = -p⁰_j (log p⁰_j + H).
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    const Temperature at = temperature(team, row, s);
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return at.beta * s[j]; });
    const float t = team.sum(row.n, [=](int64_t j) { return p.weight(at.beta * s[j]) * g[j]; });
    const float max = at.plain.max, log_sum = std::log(at.plain.sum);
    float through = 0.0f;
    if (full_gradient && at.slope != 0.0f) {
      through =
          -at.slope * team.sum(row.n, [=](int64_t j) { return p.weight(at.beta * s[j]) * (g[j] - t) * (s[j] - max); });
    }
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j], weight = p.weight(at.beta * x), log_plain = x - max - log_sum;
      const float by_entropy = through == 0.0f ? 0.0f : through * std::exp(log_plain) * (log_plain + at.entropy);
      s[j] = weight;
      g[j] = at.beta * weight * (g[j] - t) + by_entropy;
    });
  }
};

// (x - a) / w ⊙ softmax(x), a and w of the row's ends.
struct SelfAdjusted {
  static constexpr int kNumbers = 0;
  static constexpr float kNarrowest = 1e-6f;
  AdjustedEnds ends;

  struct Row {
    SoftmaxRow p;
    float min, max;  // of the row
    float a, width;
    bool by_width;  // the width passes gradient

    LRA_KERNEL float weight(float x) const { return p.weight(x) * (x - a) / width; }
  };

  SelfAdjusted bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL Row at(const Team& team, const ScoreRow& row, const float* s) const {
    Row r{SoftmaxRow::of(team, row.n, [=](int64_t j) { return s[j]; }), 0.0f, 0.0f, 0.0f, 1.0f, false};
    r.max = r.p.max;
    if (ends == AdjustedEnds::kPlain) return r;
    r.min = -team.max(row.n, [=](int64_t j) { return -s[j]; });
    r.a = r.min;
    if (ends == AdjustedEnds::kMinusMin) return r;
    float b = r.max;
    if (ends == AdjustedEnds::kZero) {
      r.a = r.a > 0.0f ? 0.0f : r.a;
      b = b < 0.0f ? 0.0f : b;
    }
    r.by_width = b - r.a >= kNarrowest;
    r.width = r.by_width ? b - r.a : kNarrowest;
    return r;
  }
  // First place of a value.
  LRA_KERNEL static int64_t place(const Team& team, const ScoreRow& row, const float* s, float value) {
    return -team.max(row.n, [=](int64_t j) { return s[j] == value ? -j : std::numeric_limits<int64_t>::lowest(); });
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row r = at(team, row, s);
    team.for_each(row.n, [=](int64_t j) { s[j] = r.weight(s[j]); });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    const Row r = at(team, row, s);
    const float t = team.sum(row.n, [=](int64_t j) { return r.weight(s[j]) * g[j]; });
    float plain = 0.0f;
    int64_t first = 0, last = 0;
    if (ends != AdjustedEnds::kPlain) {
      plain = team.sum(row.n, [=](int64_t j) { return r.p.weight(s[j]) * g[j]; }) / r.width;
      first = place(team, row, s, r.min), last = place(team, row, s, r.max);
    }
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j], u = r.p.weight(x);
      s[j] = r.weight(x);
      g[j] = u * (g[j] * (x - r.a + 1.0f) / r.width - t);
    });
    if (ends == AdjustedEnds::kPlain) return;
    const float d_width = r.by_width ? -t / r.width : 0.0f;
    const bool low = ends != AdjustedEnds::kZero || r.min < 0.0f;
    const bool high = r.by_width && (ends == AdjustedEnds::kFree || r.max > 0.0f);
    team.for_each(1, [=](int64_t) {
      if (low) g[first] -= plain + d_width;
      if (high) g[last] += d_width;
    });
  }
};

}  // namespace

std::unique_ptr<ScoreRows> softpick_rows() { return mapped_rows(Softpick{}); }
std::unique_ptr<ScoreRows> adaptive_rows(bool in_training, bool full_gradient, bool clamp) {
  return mapped_rows(Adaptive{in_training, full_gradient, clamp});
}
std::unique_ptr<ScoreRows> self_adjusted_rows(AdjustedEnds ends) { return mapped_rows(SelfAdjusted{ends}); }

}  // namespace lra::device
