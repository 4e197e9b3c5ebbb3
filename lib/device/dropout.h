// Dropout on a device: the masks of lib/ops/dropout.h, drawn where they are used, by Random123's own generator. Only
// sources that hold kernels (.cu) include this.
#pragma once

#include <Random123/philox.h>

#include "lib/device/team.h"
#include "lib/ops/dropout.h"

namespace lra::device {

// The mask of a site but for row and example. threshold 0: everything is kept.
struct DropoutMask {
  uint32_t key[2], site, threshold;
  float scale;

  DropoutMask(std::array<uint32_t, 2> dropout_key, uint32_t dropout_site, float rate)
      : key{dropout_key[0], dropout_key[1]},
        site(dropout_site),
        threshold(dropout_threshold(rate)),
        scale(dropout_scale(rate)) {}

  // A row falls into units of 8 columns that one draw decides: column 128 g + 16 v + l is number v of unit 16 g + l.
  LRA_KERNEL static int64_t units(int64_t columns) { return (columns + 127) / 128 * 16; }
  // use(column, factor) for the columns of a unit; factor: 0 or the scale.
  template <class Use>
  LRA_KERNEL void of_unit(uint32_t example, int64_t row, int64_t unit, int64_t columns, Use use) const {
    using Philox = r123::Philox4x32_R<7>;
    uint32_t block[4] = {};
    if (threshold != 0) {
      const Philox::ctr_type counter = {{static_cast<uint32_t>(unit), static_cast<uint32_t>(row), site, example}};
      const Philox::key_type philox_key = {{key[0], key[1]}};
      const Philox::ctr_type drawn = Philox()(counter, philox_key);
      for (int word = 0; word < 4; ++word) block[word] = drawn[word];
    }
    for (int64_t v = 0; v < 8; ++v) {
      const int64_t column = unit / 16 * 128 + v * 16 + unit % 16;
      if (column >= columns) return;
      const uint32_t bits = v % 2 == 0 ? block[v / 2] & 0xFFFFu : block[v / 2] >> 16;
      use(column, bits >= threshold ? scale : 0.0f);
    }
  }
};

}  // namespace lra::device
