#include "datasets/image/grey.h"

#include <cfloat>

namespace lra::image {

static_assert(FLT_EVAL_METHOD == 0, "float32 steps must be rounded to float32");

GreyScale::GreyScale() {
  constexpr float kScale = 1.0f / 255.0f;
  for (int value = 0; value < 256; ++value) {
    const float scaled = static_cast<float>(value) * kScale;
    red_[value] = 0.2989f * scaled;
    green_[value] = 0.5870f * scaled;
    blue_[value] = 0.1140f * scaled;
  }
}

}  // namespace lra::image
