// Softmax of a function of the score, z = f(x): softmax itself, ssmax (arXiv 2501.19399), sigsoftmax (1805.10829); with
// one more term in the sum: softmax1, softmax-sink (2410.17174); and gd-softmax (2210.17145).
#include "lib/device/families.h"
#include "lib/device/score_rows.h"
#include "lib/device/softmax_row.h"

namespace lra::device {
namespace {

// F: at(row) gives what has value(x), slope(x); write(row, Σ dz x, numbers).
template <class F>
struct SoftmaxOf {
  static constexpr int kNumbers = F::kNumbers;
  F f;

  SoftmaxOf bound(std::span<const float* const> parameters) const { return {f.bound(parameters)}; }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const auto z = f.at(row);
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return z.value(s[j]); });
    team.for_each(row.n, [=](int64_t j) { s[j] = p.weight(z.value(s[j])); });
  }
  // dz = p (g - Σ p g).
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    const auto z = f.at(row);
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return z.value(s[j]); });
    const float t = team.sum(row.n, [=](int64_t j) { return p.weight(z.value(s[j])) * g[j]; });
    if constexpr (kNumbers > 0) {
      const float along = team.sum(row.n, [=](int64_t j) { return p.weight(z.value(s[j])) * (g[j] - t) * s[j]; });
      const F own = f;
      team.for_each(1, [=](int64_t) { own.write(row, along, numbers); });
    }
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j], weight = p.weight(z.value(x));
      s[j] = weight;
      g[j] = weight * (g[j] - t) * z.slope(x);
    });
  }
};

struct Same {
  static constexpr int kNumbers = 0;
  Same bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL Same at(const ScoreRow&) const { return *this; }
  LRA_KERNEL float value(float x) const { return x; }
  LRA_KERNEL float slope(float) const { return 1.0f; }
};

struct Factor {
  float factor;
  LRA_KERNEL float value(float x) const { return factor * x; }
  LRA_KERNEL float slope(float) const { return factor; }
};

// z = (s log n + b) x.
struct LogLength {
  static constexpr int kNumbers = 2;
  bool biased;
  const float *scale = nullptr, *bias = nullptr;  // (H)

  LogLength bound(std::span<const float* const> parameters) const {
    return {biased, parameters[0], biased ? parameters[1] : nullptr};
  }
  LRA_KERNEL Factor at(const ScoreRow& row) const {
    return {scale[row.head] * std::log(static_cast<float>(row.n)) + (biased ? bias[row.head] : 0.0f)};
  }
  LRA_KERNEL void write(const ScoreRow& row, float along, float* numbers) const {
    numbers[0] = std::log(static_cast<float>(row.n)) * along;
    numbers[1] = along;
  }
};

// e^x σ(x): z = x - log(1 + e^-x), dz/dx = 2 - σ(x).
struct WithSigmoid {
  static constexpr int kNumbers = 0;
  WithSigmoid bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL WithSigmoid at(const ScoreRow&) const { return *this; }
  LRA_KERNEL float value(float x) const { return x - (x < 0.0f ? -x : 0.0f) - std::log1p(std::exp(-std::abs(x))); }
  LRA_KERNEL float slope(float x) const {
    const float e = std::exp(-std::abs(x));
    return 2.0f - (x < 0.0f ? e : 1.0f) / (1.0f + e);
  }
};

// e^x / (e^b + Σ e^x), b = 0 or learnt.
struct Sink {
  static constexpr int kNumbers = 1;
  bool learnt;
  const float* sink = nullptr;  // (H)

  struct Row {
    SoftmaxRow p;
    float sink;  // weight
  };

  Sink bound(std::span<const float* const> parameters) const { return {learnt, learnt ? parameters[0] : nullptr}; }
  LRA_KERNEL Row at(const Team& team, const ScoreRow& row, const float* s) const {
    const float b = learnt ? sink[row.head] : 0.0f;
    Row all;
    all.p = SoftmaxRow::of(team, row.n + 1, [=](int64_t j) { return j < row.n ? s[j] : b; });
    all.sink = all.p.weight(b);
    return all;
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row all = at(team, row, s);
    team.for_each(row.n, [=](int64_t j) { s[j] = all.p.weight(s[j]); });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    const Row all = at(team, row, s);
    const float t = team.sum(row.n, [=](int64_t j) { return all.p.weight(s[j]) * g[j]; });
    team.for_each(1, [=](int64_t) { numbers[0] = -all.sink * t; });
    team.for_each(row.n, [=](int64_t j) {
      s[j] = all.p.weight(s[j]);
      g[j] = s[j] * (g[j] - t);
    });
  }
};

// u / (1 - (1 - β) u), u = softmax(x).
struct GradientDecay {
  static constexpr int kNumbers = 0;
  float rest;  // 1 - β

  GradientDecay bound(std::span<const float* const>) const { return *this; }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return s[j]; });
    const float r = rest;
    team.for_each(row.n, [=](int64_t j) {
      const float u = p.weight(s[j]);
      s[j] = u / (1.0f - r * u);
    });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float*) const {
    const SoftmaxRow p = SoftmaxRow::of(team, row.n, [=](int64_t j) { return s[j]; });
    const float r = rest;
    const auto du = [=](int64_t j, float u) { return g[j] / ((1.0f - r * u) * (1.0f - r * u)); };
    const float t = team.sum(row.n, [=](int64_t j) {
      const float u = p.weight(s[j]);
      return u * du(j, u);
    });
    team.for_each(row.n, [=](int64_t j) {
      const float u = p.weight(s[j]);
      g[j] = u * (du(j, u) - t);
      s[j] = u / (1.0f - r * u);
    });
  }
};

}  // namespace

std::unique_ptr<ScoreRows> softmax_rows() { return mapped_rows(SoftmaxOf<Same>{}); }
std::unique_ptr<ScoreRows> ssmax_rows(bool bias) { return mapped_rows(SoftmaxOf<LogLength>{{bias}}); }
std::unique_ptr<ScoreRows> sigsoftmax_rows() { return mapped_rows(SoftmaxOf<WithSigmoid>{}); }
std::unique_ptr<ScoreRows> softmax_sink_rows(bool learnt) { return mapped_rows(Sink{learnt}); }
std::unique_ptr<ScoreRows> gd_softmax_rows(float beta) { return mapped_rows(GradientDecay{1.0f - beta}); }

}  // namespace lra::device
