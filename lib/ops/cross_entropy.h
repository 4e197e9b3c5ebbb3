// Softmax cross entropy of one example, -log softmax(logits)[label], in double inside (a handful of classes).
#pragma once

#include <span>

namespace lra {

// Returns the loss in nats; d_logits (same size, may be empty) = weight * (softmax(logits) - onehot(label)).
double cross_entropy(std::span<const float> logits, int label, float weight, std::span<float> d_logits);
// softmax(logits)[label].
double probability(std::span<const float> logits, int label);

}  // namespace lra
