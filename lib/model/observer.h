// Looks at the attention of a model where it runs; diagnostics are built on it.
#pragma once

#include "lib/attention/attention.h"

namespace lra {

// in.layer says which layer, in.example which sequence: 0, or 1 for the second of a pair.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  // Called before the kernel's forward pass. What it takes from the arena is released afterwards.
  virtual void attention(const AttentionKernel& kernel, const AttentionInput& in, Arena& arena) = 0;
  // Where the backward pass adds its squares, as AttentionGradients::score_gradient_squares; null: not asked for.
  virtual double* score_gradient_squares(const AttentionInput& in) { return nullptr; }
};

}  // namespace lra
