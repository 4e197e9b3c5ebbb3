// Dropout with masks from a counter-based generator: whether an element is kept depends on (seed, step, example,
// layer, site, row, column) alone, never on who computes it or in which order. The backward pass draws the same mask.
//
// Mask of one row: columns fall into groups of 128. Group g takes 16 Philox4x32-7 blocks with counters
// {16 g + l, row, site, example}, l = 0 … 15, and the key of (seed, step). Column 128 g + 16 v + l is decided by the
// 16 bits number v of block l: word v / 2, low half for even v, high half for odd v. It is kept when that number is
// at least dropout_threshold(rate).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "lib/tensor/view.h"

namespace lra {

// What stands at counter word 2, below the layer: site + 256 * layer. Attention heads use kAttention + head.
enum class DropoutSite : uint32_t {
  kEmbedding = 0,
  kAttentionOutput = 1,
  kHidden = 2,
  kMlpOutput = 3,
  kAttention = 16
};

struct DropoutKey {
  std::array<uint32_t, 2> key{};  // random_key(seed, RandomStream::kDropout, step)
  uint32_t site = 0;
  uint32_t example = 0;  // place in the global batch; pair tasks: 2 * place + (0 or 1)
};

inline uint32_t dropout_site(DropoutSite site, int layer, int head = 0) {
  return static_cast<uint32_t>(site) + static_cast<uint32_t>(head) + 256u * static_cast<uint32_t>(layer);
}

// A rate is rounded to a multiple of 2^-16 (0.1 becomes 6554 / 65536); kept values are multiplied by
// dropout_scale = 1 / (1 - rounded rate), so the mean stays exact.
inline uint32_t dropout_threshold(float rate) { return static_cast<uint32_t>(std::lround(rate * 65536.0f)); }
inline float dropout_scale(float rate) { return 65536.0f / (65536.0f - static_cast<float>(dropout_threshold(rate))); }

// Bits of rows row … row + rows - 1 and columns col … col + cols - 1, col a multiple of 128: bit j % 8 of byte j / 8 of
// a row = column col + j is kept. Rows lie `stride` bytes apart and have room for 16 bytes a started group of 128.
void dropout_mask(const DropoutKey& key, float rate, int64_t row, int64_t col, int64_t rows, int64_t cols,
                  uint8_t* bits, int64_t stride);

// x *= mask * scale, rows counted from 0. Forward and backward are the same. rate 0 leaves x alone.
void dropout_apply(const DropoutKey& key, float rate, Matrix x);
// y += mask * scale * x: the residual connection around a dropped-out branch.
void dropout_add(const DropoutKey& key, float rate, ConstMatrix x, Matrix y);
// y = mask * scale * x.
void dropout_copy(const DropoutKey& key, float rate, ConstMatrix x, Matrix y);

namespace ref {
// The definition above, one element at a time.
bool dropout_keeps(const DropoutKey& key, float rate, uint32_t row, uint32_t col);
}  // namespace ref

}  // namespace lra
