// Families whose weights depend on one score each: polynomial (arXiv 2410.18613), sigmoid (2409.04431), relu-n
// (2309.08586), rela (2104.07012). dx = f'(x) g.
#include "lib/device/families.h"
#include "lib/device/length_factor.h"
#include "lib/device/score_rows.h"

namespace lra::device {
namespace {

LRA_KERNEL float whole_power(float x, int power) {
  float y = 1.0f;
  for (float square = x; power > 0; power /= 2, square *= square) {
    if (power % 2 == 1) y *= square;
  }
  return y;
}

struct Polynomial {
  static constexpr int kNumbers = 1;
  int power;
  LengthFactor factor;
  bool learnt;
  const float* gain = nullptr;  // (H)

  Polynomial bound(std::span<const float* const> parameters) const {
    Polynomial bound = *this;
    if (learnt) bound.gain = parameters[0];
    return bound;
  }
  LRA_KERNEL float scale(const ScoreRow& row) const {
    return (gain == nullptr ? 1.0f : gain[row.head]) * length_factor(factor, row.n);
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const float a = scale(row);
    const int q = power;
    team.for_each(row.n, [=](int64_t j) { s[j] = a * whole_power(s[j], q); });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    const float a = scale(row), c = length_factor(factor, row.n);
    const int q = power;
    if (gain != nullptr) {
      const float sum = team.sum(row.n, [=](int64_t j) { return c * whole_power(s[j], q) * g[j]; });
      team.for_each(1, [=](int64_t) { numbers[0] = sum; });
    }
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j], lower = whole_power(x, q - 1);
      s[j] = a * lower * x;
      g[j] *= a * static_cast<float>(q) * lower;
    });
  }
};

LRA_KERNEL float sigmoid(float u) {
  const float e = std::exp(-std::abs(u));
  return (u < 0.0f ? e : 1.0f) / (1.0f + e);
}

struct Sigmoid {
  static constexpr int kNumbers = 1;
  SigmoidBias form;
  LengthFactor factor;
  const float* learnt = nullptr;  // (H)

  Sigmoid bound(std::span<const float* const> parameters) const {
    Sigmoid bound = *this;
    if (form == SigmoidBias::kLearnt) bound.learnt = parameters[0];
    return bound;
  }
  LRA_KERNEL float bias(const ScoreRow& row) const {
    if (form == SigmoidBias::kNone) return 0.0f;
    return form == SigmoidBias::kLearnt ? learnt[row.head] : -std::log(static_cast<float>(row.n));
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const float b = bias(row), a = length_factor(factor, row.n);
    team.for_each(row.n, [=](int64_t j) { s[j] = a * sigmoid(s[j] + b); });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    const float b = bias(row), a = length_factor(factor, row.n);
    team.for_each(row.n, [=](int64_t j) {
      const float p = sigmoid(s[j] + b), other = sigmoid(-s[j] - b);
      s[j] = a * p;
      g[j] *= a * p * other;
    });
    if (learnt == nullptr) return;
    const float sum = team.sum(row.n, [=](int64_t j) { return g[j]; });
    team.for_each(1, [=](int64_t) { numbers[0] = sum; });
  }
};

struct Relu {
  static constexpr int kNumbers = 0;
  bool square;
  LengthFactor factor;

  Relu bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const float a = length_factor(factor, row.n);
    const bool squared = square;
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j] > 0.0f ? s[j] : 0.0f;
      s[j] = a * (squared ? x * x : x);
    });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    const float a = length_factor(factor, row.n);
    const bool squared = square;
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j] > 0.0f ? s[j] : 0.0f;
      g[j] *= s[j] > 0.0f ? a * (squared ? 2.0f * x : 1.0f) : 0.0f;
      s[j] = a * (squared ? x * x : x);
    });
  }
};

}  // namespace

std::unique_ptr<ScoreRows> polynomial_rows(int power, LengthFactor factor, bool learnt) {
  return mapped_rows(Polynomial{power, factor, learnt});
}
std::unique_ptr<ScoreRows> sigmoid_rows(SigmoidBias bias, LengthFactor factor) {
  return mapped_rows(Sigmoid{bias, factor});
}
std::unique_ptr<ScoreRows> relu_rows(bool square, LengthFactor factor) { return mapped_rows(Relu{square, factor}); }

}  // namespace lra::device
