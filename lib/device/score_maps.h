// Weights that depend on one score each, and their slopes: polynomial (arXiv 2410.18613), sigmoid (2409.04431), relu-n
// and rela (2309.08586, 2104.07012). Only sources that hold kernels (.cu) include this.
#pragma once

#include "lib/device/length_factor.h"

namespace lra::device {

struct ScoreValue {
  float value, slope;
};

LRA_KERNEL inline float whole_power(float x, int power) {
  float y = 1.0f;
  for (float square = x; power > 0; power /= 2, square *= square) {
    if (power % 2 == 1) y *= square;
  }
  return y;
}

// factor x^power
struct PowerMap {
  int power;
  float factor;
  LRA_KERNEL ScoreValue operator()(float x) const {
    const float lower = factor * whole_power(x, power - 1);
    return {lower * x, lower * static_cast<float>(power)};
  }
};

// factor σ(x + bias)
struct SigmoidMap {
  float factor, bias;
  LRA_KERNEL ScoreValue operator()(float x) const {
    const float u = x + bias, e = std::exp(-std::abs(u));
    const float p = (u < 0.0f ? e : 1.0f) / (1.0f + e), other = (u < 0.0f ? 1.0f : e) / (1.0f + e);
    return {factor * p, factor * p * other};
  }
};

// factor relu(x), squared or not
struct ReluMap {
  bool square;
  float factor;
  LRA_KERNEL ScoreValue operator()(float x) const {
    if (!(x > 0.0f)) return {0.0f, 0.0f};
    return square ? ScoreValue{factor * x * x, factor * 2.0f * x} : ScoreValue{factor * x, factor};
  }
};

}  // namespace lra::device
