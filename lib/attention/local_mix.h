// The local residual of InLine attention (Han et al. 2024, arXiv 2412.06590), around any kernel: a depthwise
// convolution of V is added to its output, whose taps are made of the sequence itself: mean of the layer input over the
// tokens, a linear map in groups of a head (local_in), GELU, another to the taps of each channel (local_out).
#pragma once

#include <memory>

#include "lib/attention/attention.h"
#include "lib/attention/attention_ref.h"

namespace lra {

// width 0: 3 taps along the padded sequence; width W: 3 x 3, the sequence read as rows of W places. Its parameters
// stand behind those of the kernel. UsageError where the layer input is not as wide as the heads together.
std::unique_ptr<AttentionKernel> add_local_mix(std::unique_ptr<AttentionKernel> kernel, int width);

namespace ref {
// out += the convolution; parameters from number `first` on are those of the mix.
void add_local_mix(const AttentionProblem& problem, size_t first, int width, Row& out);
}  // namespace ref

}  // namespace lra
