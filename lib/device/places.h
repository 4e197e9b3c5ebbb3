// Tokens by their places in the padded sequence. Only sources that hold kernels (.cu) include this.
#pragma once

#include "lib/device/team.h"

namespace lra::device {

// The first of a sequence's tokens at `place` or behind it; places grow.
LRA_KERNEL inline int64_t token_at(const int32_t* places, int64_t tokens, int64_t place) {
  int64_t low = 0, high = tokens;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (places[middle] < place) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace lra::device
