// Kernels of mos (arXiv 1711.03953 as attention: our definition).
#include "lib/device/mixture.h"
#include "lib/device/score_rows.h"
#include "lib/device/softmax_row.h"

namespace lra::device {
namespace {

// With p^c = softmax(β_c x), t^c = Σ p^c g and dz^c = p^c (g - t^c): dx = Σ_c π_c β_c dz^c, dβ_c = π_c Σ dz^c x, dπ_c =
// t^c.
struct Mixture {
  static constexpr int kNumbers = kMostComponents;
  int components;
  const float* beta = nullptr;  // (H, K)

  struct Row {
    SoftmaxRow p[kMostComponents];
    float share[kMostComponents], beta[kMostComponents], t[kMostComponents];
    int components;

    LRA_KERNEL float weight(float x) const {
      float sum = 0.0f;
      for (int c = 0; c < components; ++c) sum += share[c] * p[c].weight(beta[c] * x);
      return sum;
    }
    LRA_KERNEL float pull(float x, float g) const {
      float sum = 0.0f;
      for (int c = 0; c < components; ++c) sum += share[c] * beta[c] * p[c].weight(beta[c] * x) * (g - t[c]);
      return sum;
    }
  };

  Mixture bound(std::span<const float* const> parameters) const { return {components, parameters[1]}; }
  LRA_KERNEL int64_t place(const ScoreRow& row) const {
    return ((row.first + row.query) * row.heads + row.head) * components;
  }
  LRA_KERNEL Row at(const Team& team, const ScoreRow& row, const float* s) const {
    Row r;
    r.components = components;
    for (int c = 0; c < components; ++c) {
      const float b = beta[row.head * components + c];
      r.beta[c] = b;
      r.share[c] = row.context[place(row) + c];
      r.t[c] = 0.0f;
      r.p[c] = SoftmaxRow::of(team, row.n, [=](int64_t j) { return b * s[j]; });
    }
    return r;
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row r = at(team, row, s);
    team.for_each(row.n, [=](int64_t j) { s[j] = r.weight(s[j]); });
  }
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    Row r = at(team, row, s);
    for (int c = 0; c < components; ++c) {
      const SoftmaxRow p = r.p[c];
      const float b = r.beta[c], share = r.share[c];
      const float t = team.sum(row.n, [=](int64_t j) { return p.weight(b * s[j]) * g[j]; });
      const float along = team.sum(row.n, [=](int64_t j) { return p.weight(b * s[j]) * (g[j] - t) * s[j]; });
      float *d_share = row.d_context + place(row) + c, *d_beta = numbers + c;
      team.for_each(1, [=](int64_t) { *d_share += t, *d_beta = share * along; });
      r.t[c] = t;
    }
    const Row all = r;
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j];
      s[j] = all.weight(x);
      g[j] = all.pull(x, g[j]);
    });
  }
};

}  // namespace

std::unique_ptr<ScoreRows> mixture_maps(int components) { return mapped_rows(Mixture{components}); }

void mixture_weights(Context c, int64_t rows, int components, float* logits) {
  launch_each(c.device, rows, [=] LRA_KERNEL(int64_t i) {
    float* row = logits + i * components;
    float max = row[0], sum = 0.0f;
    for (int k = 1; k < components; ++k) max = row[k] > max ? row[k] : max;
    for (int k = 0; k < components; ++k) sum += row[k] = std::exp(row[k] - max);
    for (int k = 0; k < components; ++k) row[k] /= sum;
  });
}

void mixture_weights_backward(Context c, int64_t rows, int components, const float* weights, float* d) {
  launch_each(c.device, rows, [=] LRA_KERNEL(int64_t i) {
    const float* p = weights + i * components;
    float* row = d + i * components;
    float t = 0.0f;
    for (int k = 0; k < components; ++k) t += p[k] * row[k];
    for (int k = 0; k < components; ++k) row[k] = p[k] * (row[k] - t);
  });
}

}  // namespace lra::device
