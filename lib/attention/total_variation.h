// The proximal map of total variation (fusedmax) by Condat's direct algorithm (2013, IEEE SPL 20), for the host and for
// kernels of lib/device.
#pragma once

#include <cstdint>

namespace lra {

// argmin_y 1/2 |y - x|² + weight Σ |y_{j+1} - y_j| over n >= 1 numbers, segment by segment: close(first, last, value)
// says that y is value from first to last, after which x is read behind last alone: y may be written over it. Segments
// grow while their lowest and highest possible values, low and high, keep the tension of the string at their end within
// ± weight.
template <class Close>
constexpr void total_variation(const float* x, int64_t n, double weight, const Close& close) {
  int64_t start = 0, at = 0, low_end = 0, high_end = 0;
  double low = x[0] - weight, high = x[0] + weight, low_tension = weight, high_tension = -weight;
  while (true) {
    if (at == n - 1) {
      if (low_tension < 0.0) {
        close(start, low_end, low);
        start = at = low_end = low_end + 1;
        low = x[at], low_tension = weight;
        high_tension = x[at] + weight - high;
      } else if (high_tension > 0.0) {
        close(start, high_end, high);
        start = at = high_end = high_end + 1;
        high = x[at], high_tension = -weight;
        low_tension = x[at] - weight - low;
      } else {
        close(start, n - 1, low + low_tension / static_cast<double>(n - start));
        return;
      }
      continue;
    }
    const double next = x[at + 1];
    if (next + low_tension < low - weight) {
      close(start, low_end, low);
      start = at = high_end = low_end = low_end + 1;
      low = x[at], high = x[at] + 2.0 * weight;
      low_tension = weight, high_tension = -weight;
    } else if (next + high_tension > high + weight) {
      close(start, high_end, high);
      start = at = low_end = high_end = high_end + 1;
      low = x[at] - 2.0 * weight, high = x[at];
      low_tension = weight, high_tension = -weight;
    } else {
      ++at;
      low_tension += next - low;
      high_tension += next - high;
      const double length = static_cast<double>(at - start + 1);
      if (low_tension >= weight) {
        low += (low_tension - weight) / length;
        low_tension = weight, low_end = at;
      }
      if (high_tension <= -weight) {
        high += (high_tension + weight) / length;
        high_tension = -weight, high_end = at;
      }
    }
  }
}

}  // namespace lra
