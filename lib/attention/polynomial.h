// What the forms of polynomial attention share: the values of its options. P = gain x^q / c (arXiv 2410.18613).
#pragma once

#include <string>
#include <vector>

#include "lib/attention/attention.h"

namespace lra {

class PolynomialOptions {
 public:
  PolynomialOptions(const AttentionSpec& spec, const AttentionShape& shape);

  int power() const { return power_; }
  // c of a row with `keys` keys.
  double divisor(int64_t keys) const;
  bool learnt_gain() const { return learnt_gain_; }
  // Of a head; parameters as AttentionInput::parameters.
  float gain(std::span<const float* const> parameters, int head) const {
    return learnt_gain_ ? parameters[0][head] : 1.0f;
  }

 private:
  int power_;
  bool learnt_gain_;
  int64_t fixed_length_;  // n of the scale, or 0 for the row's keys
  std::string scale_;
  double moment_;
  double constant_ = 1.0;
};

// gain (H), where the spec learns one.
std::vector<KernelParameter> polynomial_parameters(const AttentionSpec& spec, const AttentionShape& shape);

// P = f(S) as it stands, whatever the option form says.
std::unique_ptr<AttentionKernel> polynomial_quadratic(const AttentionSpec& spec, const AttentionShape& shape);

}  // namespace lra
