// Kernels behind output_map.h; matrices are (tokens, H*D).
#pragma once

#include "lib/device/ops.h"

namespace lra::device {

void exclude_self_forward(Context c, int64_t heads, ConstMatrix v, ConstMatrix y, Matrix out);
// dy is overwritten, dv added to.
void exclude_self_backward(Context c, int64_t heads, ConstMatrix v, ConstMatrix y, ConstMatrix d_out, Matrix dy,
                           Matrix dv);

// gain, gate (H*D); gate null: none.
void rms_gate_forward(Context c, const float* gain, const float* gate, ConstMatrix y, Matrix out);
// d_gain, d_gate: each token's own part, without gaps between rows.
void rms_gate_backward(Context c, const float* gain, const float* gate, ConstMatrix y, ConstMatrix d_out, Matrix dy,
                       Matrix d_gain, Matrix d_gate);

}  // namespace lra::device
