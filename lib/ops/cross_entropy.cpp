// Softmax cross entropy of one example; see the header for its definition.
#include "lib/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "lib/util/check.h"

namespace lra {
namespace {

// Logits are taken relative to the largest, so that no exponential overflows.
struct Softmax {
  double largest, sum;
  double shifted(float logit) const { return static_cast<double>(logit) - largest; }
};

Softmax softmax_of(std::span<const float> logits, int label) {
  check(label >= 0 && label < static_cast<int>(logits.size()), "label {} of {} classes", label, logits.size());
  Softmax softmax{static_cast<double>(*std::max_element(logits.begin(), logits.end())), 0.0};
  for (const float logit : logits) softmax.sum += std::exp(softmax.shifted(logit));
  return softmax;
}

}  // namespace

double cross_entropy(std::span<const float> logits, int label, float weight, std::span<float> d_logits) {
  check(d_logits.empty() || d_logits.size() == logits.size(), "{} gradients of {} logits", d_logits.size(),
        logits.size());
  const Softmax softmax = softmax_of(logits, label);
  const double target = softmax.shifted(logits[label]);
  for (size_t i = 0; i < d_logits.size(); ++i) {
    const double expected = static_cast<int>(i) == label ? 1.0 : 0.0;
    const double share = std::exp(softmax.shifted(logits[i])) / softmax.sum;
    d_logits[i] = static_cast<float>(weight * (share - expected));
  }
  return std::log(softmax.sum) - target;
}

double probability(std::span<const float> logits, int label) {
  const Softmax softmax = softmax_of(logits, label);
  return std::exp(softmax.shifted(logits[label])) / softmax.sum;
}

}  // namespace lra
