// Families that are affine in the scores once a row's mean and deviation are known: nap (arXiv 2005.09561), γ (x -
// mean) / (sd + 1e-3) + b, and inline (2412.06590), (x - mean + 1) / n.
#include "lib/device/families.h"
#include "lib/device/score_rows.h"

namespace lra::device {
namespace {

struct Nap {
  static constexpr int kNumbers = 2;
  static constexpr float kEpsilon = 1e-3f;
  const float *gain = nullptr, *bias = nullptr;  // (H)

  struct Row {
    float mean, sd, r;  // r = 1 / (sd + epsilon)
  };

  Nap bound(std::span<const float* const> parameters) const { return {parameters[0], parameters[1]}; }
  LRA_KERNEL static Row at(const Team& team, const ScoreRow& row, const float* s) {
    const float n = static_cast<float>(row.n);
    const float mean = team.sum(row.n, [=](int64_t j) { return s[j]; }) / n;
    const float sd = std::sqrt(team.sum(row.n, [=](int64_t j) { return (s[j] - mean) * (s[j] - mean); }) / n);
    return {mean, sd, 1.0f / (sd + kEpsilon)};
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row r = at(team, row, s);
    const float a = gain[row.head] * r.r, b = bias[row.head];
    team.for_each(row.n, [=](int64_t j) { s[j] = a * (s[j] - r.mean) + b; });
  }
  // dx = γ ((g - mean g) r - c r² Σ g c / (n sd)), c = x - mean.
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    const Row r = at(team, row, s);
    const float n = static_cast<float>(row.n), a = gain[row.head] * r.r, b = bias[row.head];
    const float sum = team.sum(row.n, [=](int64_t j) { return g[j]; });
    const float along = team.sum(row.n, [=](int64_t j) { return g[j] * (s[j] - r.mean); });
    const float share = r.sd > 0.0f ? a * r.r * along / (n * r.sd) : 0.0f;
    team.for_each(1, [=](int64_t) { numbers[0] = along * r.r, numbers[1] = sum; });
    team.for_each(row.n, [=](int64_t j) {
      const float c = s[j] - r.mean;
      g[j] = a * (g[j] - sum / n) - share * c;
      s[j] = a * c + b;
    });
  }
};

struct Inline {
  static constexpr int kNumbers = 0;

  Inline bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const float n = static_cast<float>(row.n);
    const float mean = team.sum(row.n, [=](int64_t j) { return s[j]; }) / n;
    team.for_each(row.n, [=](int64_t j) { s[j] = (s[j] - mean + 1.0f) / n; });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    forward(team, row, s);
    const float n = static_cast<float>(row.n);
    const float mean = team.sum(row.n, [=](int64_t j) { return g[j]; }) / n;
    team.for_each(row.n, [=](int64_t j) { g[j] = (g[j] - mean) / n; });
  }
};

}  // namespace

std::unique_ptr<ScoreRows> nap_rows() { return mapped_rows(Nap{}); }
std::unique_ptr<ScoreRows> inline_rows() { return mapped_rows(Inline{}); }

}  // namespace lra::device
