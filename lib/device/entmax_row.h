// Projection of a row on the simplex: sparsemax (arXiv 1602.02068), entmax15 and entmax (1905.05702), p = relu((α - 1)
// x - τ)^(1 / (α - 1)) with τ such that they sum to 1. With y = (α - 1)(x - max) + 1, τ is in [0, 1]: by Newton's
// method from 0, which for α <= 2 rises to the root, by bisection else. Only sources that hold kernels (.cu) include
// this.
#pragma once

#include "lib/device/score_rows.h"

namespace lra::device {

struct Entmax {
  static constexpr int kNumbers = 1;
  float fixed;  // α
  bool learnt;
  const float* logit = nullptr;  // (H)

  struct Row {
    float scale, exponent;  // α - 1, 1 / (α - 1)
    float max, tau;

    LRA_KERNEL float gap(float x) const { return scale * (x - max) + 1.0f - tau; }
    LRA_KERNEL static float power(float base, float exponent) {
      return exponent == 1.0f   ? base
             : exponent == 2.0f ? base * base
             : exponent == 0.0f ? 1.0f
                                : std::pow(base, exponent);
    }
    LRA_KERNEL float weight(float x) const {
      const float above = gap(x);
      return above > 0.0f ? power(above, exponent) : 0.0f;
    }
    // p^(2 - α) on the support.
    LRA_KERNEL float lower(float x) const {
      const float above = gap(x);
      return above > 0.0f ? power(above, exponent - 1.0f) : 0.0f;
    }
  };

  Entmax bound(std::span<const float* const> parameters) const {
    return {fixed, learnt, learnt ? parameters[0] : nullptr};
  }
  LRA_KERNEL Row at(const Team& team, const ScoreRow& row, const float* s) const {
    const float scale = learnt ? 1.0f / (1.0f + std::exp(-logit[row.head])) : fixed - 1.0f;
    Row r{scale, 1.0f / scale, team.max(row.n, [=](int64_t j) { return s[j]; }), 0.0f};
    const auto excess = [&](float tau) {
      Row at_tau = r;
      at_tau.tau = tau;
      return team.sum(row.n, [=](int64_t j) { return at_tau.weight(s[j]); }) - 1.0f;
    };
    if (scale <= 1.0f) {
      for (int step = 0; step < 50; ++step) {
        const float above = excess(r.tau);
        const Row now = r;
        const float slope = r.exponent * team.sum(row.n, [=](int64_t j) { return now.lower(s[j]); });
        const float next = r.tau + above / slope;
        if (!(next > r.tau)) break;
        r.tau = next;
      }
    } else {
      float low = 0.0f, high = 1.0f;
      for (int step = 0; step < 30; ++step) {
        const float middle = 0.5f * (low + high);
        (excess(middle) >= 0.0f ? low : high) = middle;
      }
      r.tau = low;
    }
    return r;
  }
  LRA_KERNEL void forward(const Team& team, const ScoreRow& row, float* s) const {
    const Row r = at(team, row, s);
    team.for_each(row.n, [=](int64_t j) { s[j] = r.weight(s[j]); });
  }
  // dx = u (g - Σ u g / Σ u), u = p^(2 - α); dα = Σ g ((p - ũ) / (α - 1)² - (p log p - ũ Σ p log p) / (α - 1)), ũ = u /
  // Σ u.
  LRA_KERNEL void backward(const Team& team, const ScoreRow& row, float* s, float* g, float* numbers) const {
    const Row r = at(team, row, s);
    const float total = team.sum(row.n, [=](int64_t j) { return r.lower(s[j]); });
    const float mean = team.sum(row.n, [=](int64_t j) { return r.lower(s[j]) * g[j]; }) / total;
    if (learnt) {
      const auto log_weight = [=](float p) { return p > 0.0f ? p * std::log(p) : 0.0f; };
      const float entropy = team.sum(row.n, [=](int64_t j) { return log_weight(r.weight(s[j])); });
      const float sum = team.sum(row.n, [=](int64_t j) {
        const float p = r.weight(s[j]), u = r.lower(s[j]) / total;
        return g[j] * ((p - u) / r.scale - (log_weight(p) - u * entropy)) / r.scale;
      });
      team.for_each(1, [=](int64_t) { numbers[0] = sum * r.scale * (1.0f - r.scale); });
    }
    team.for_each(row.n, [=](int64_t j) {
      const float x = s[j];
      g[j] = r.lower(x) * (g[j] - mean);
      s[j] = r.weight(x);
    });
  }
};

}  // namespace lra::device
