// Forget gates of fox and fox-bi: kernels, and the rows made of them. Sums c and gradients of sums are (tokens, H).
#pragma once

#include <memory>

#include "lib/device/score_panel.h"

namespace lra::device {

// Rows with their sums and their rows' gradients of them, without what makes the sums.
std::unique_ptr<ScoreRows> forget_maps(bool both);
// The columns' part of the gradients of a panel's sums, from its g.
void add_forget_columns(Context c, const ScorePanel& panel, bool both);
// Of the gates' logits (tokens, H), in double.
void forget_sums(Context c, const RaggedBatch& batch, int64_t heads, const float* logits, float* sums);
void forget_sums_backward(Context c, const RaggedBatch& batch, int64_t heads, const float* logits, const float* d_sums,
                          float* d_logits);

// The family.
std::unique_ptr<ScoreRows> forget_rows(bool both, int64_t heads);

}  // namespace lra::device
