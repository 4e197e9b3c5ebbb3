// Score rows of each family; attention.cpp chooses by name. Formulas: docs/attention.md and the family's file in
// lib/attention.
#pragma once

#include <memory>

#include "lib/attention/score_maps.h"
#include "lib/device/score_panel.h"

namespace lra::device {

// factor * n^-exponent, n the keys of the row, or `length` where that is above 0.
struct LengthFactor {
  float factor = 1.0f, exponent = 0.0f;
  float length = 0.0f;
};

// x^power times the factor; learnt: times parameter 0 (H).
std::unique_ptr<ScoreRows> polynomial_rows(int power, LengthFactor factor, bool learnt);
// σ(x + bias) times the factor; bias: that of the option.
enum class SigmoidBias { kNone, kLength, kLearnt };
std::unique_ptr<ScoreRows> sigmoid_rows(SigmoidBias bias, LengthFactor factor);
// relu(x), squared or not, times the factor.
std::unique_ptr<ScoreRows> relu_rows(bool square, LengthFactor factor);

std::unique_ptr<ScoreRows> softmax_rows();
std::unique_ptr<ScoreRows> ssmax_rows(bool bias);
std::unique_ptr<ScoreRows> sigsoftmax_rows();
std::unique_ptr<ScoreRows> softmax_sink_rows(bool learnt);
std::unique_ptr<ScoreRows> gd_softmax_rows(float beta);
std::unique_ptr<ScoreRows> softpick_rows();
std::unique_ptr<ScoreRows> adaptive_rows(bool in_training, bool full_gradient, bool clamp);

enum class AdjustedEnds { kPlain, kMinusMin, kZero, kFree };
std::unique_ptr<ScoreRows> self_adjusted_rows(AdjustedEnds ends);

// softmax: of the wave, else the wave over its sum.
std::unique_ptr<ScoreRows> periodic_rows(WaveMap<float> wave, bool softmax, bool standardised);

// learnt: alpha = 1 + σ(parameter 0 (H)).
std::unique_ptr<ScoreRows> entmax_rows(float alpha, bool learnt);

std::unique_ptr<ScoreRows> fusedmax_rows(float lambda);
std::unique_ptr<ScoreRows> oscarmax_rows(float beta);

std::unique_ptr<ScoreRows> nap_rows();
std::unique_ptr<ScoreRows> inline_rows();

}  // namespace lra::device
