// What InLine attention (lib/attention/inline.cpp, local_mix.h) puts around an attention.
#pragma once

#include <memory>
#include <string>

#include "lib/device/attention.h"

namespace lra::device {

// Of φ(q) and φ(k); features: the option's value, "identity" for none.
std::unique_ptr<Attention> map_inputs(std::unique_ptr<Attention> attention, const std::string& features);
// A convolution of V is added whose taps are made of the mean of the layer input; its parameters stand behind the
// `before` of the attention. width: as PlaceTaps.
std::unique_ptr<Attention> add_local_mix(std::unique_ptr<Attention> attention, const AttentionShape& shape, int width,
                                         size_t before);

}  // namespace lra::device
