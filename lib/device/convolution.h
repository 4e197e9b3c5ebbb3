// Depthwise convolution over the places of the padded sequence (lib/attention/place_convolution.h).
#pragma once

#include "lib/device/ops.h"

namespace lra::device {

struct PlaceTaps {
  int64_t taps;  // along the sequence, odd; of width > 0: 9, the sequence read as rows of that many places
  int64_t width = 0;
  const float* weight = nullptr;  // (columns of x / columns, taps)
  int64_t columns = 1;            // neighbours that share taps
  int64_t next = 0;               // floats from a sequence's weights to those of the next; 0: they are the same
};

// y (tokens, C) += the sum of weight * x over the tokens under the taps of each; back: x stands under y's.
void add_convolution(Context c, const RaggedBatch& batch, const PlaceTaps& taps, bool back, ConstMatrix x, Matrix y);
// Gradients of the weights of each sequence: d_weight (sequences, C / columns * taps), overwritten.
void convolution_gradients(Context c, const RaggedBatch& batch, const PlaceTaps& taps, ConstMatrix x, ConstMatrix d_out,
                           Matrix d_weight);

}  // namespace lra::device
