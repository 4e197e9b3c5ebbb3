// mos, a mixture of softmaxes: P = Σ_c π_c softmax(β_c x), π = softmax(W q): kernels, and the rows made of them. π and
// its gradients are (tokens, H, K).
#pragma once

#include <memory>

#include "lib/device/score_panel.h"

namespace lra::device {

constexpr int kMostComponents = 16;

// Rows with their mixing weights and their gradients, without what makes the weights.
std::unique_ptr<ScoreRows> mixture_maps(int components);
// In place: of the rows of K logits, softmax; of the rows of gradients of weights, those of logits.
void mixture_weights(Context c, int64_t rows, int components, float* logits);
void mixture_weights_backward(Context c, int64_t rows, int components, const float* weights, float* d);

// The family.
std::unique_ptr<ScoreRows> mixture_rows(int components, const AttentionShape& shape);

}  // namespace lra::device
