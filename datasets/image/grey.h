// Grey levels of colour pixels, bit for bit as TensorFlow's rgb_to_grayscale gives them on uint8, which the Long Range
// Arena used (Tay et al. 2021).
#pragma once

#include <array>
#include <cstdint>

namespace lra::image {

// r = R (1/255) and likewise g, b; y = (0.2989 r + 0.5870 g) + 0.1140 b; level = floor(255.5 y): each step rounded to
// float32, nothing fused. 0 to 255.
class GreyScale {
 public:
  GreyScale();
  uint8_t level(uint8_t red, uint8_t green, uint8_t blue) const {
    const float sum = red_[red] + green_[green];
    const float luma = sum + blue_[blue];
    return static_cast<uint8_t>(255.5f * luma);  // never negative: truncation is floor
  }

 private:
  std::array<float, 256> red_, green_, blue_;  // shares of the sum
};

}  // namespace lra::image
