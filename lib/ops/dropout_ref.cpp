// The definition of dropout masks with Random123's own generator, one element at a time.
#include <Random123/philox.h>

#include "lib/ops/dropout.h"

namespace lra::ref {

bool dropout_keeps(const DropoutKey& key, float rate, uint32_t row, uint32_t col) {
  using Philox = r123::Philox4x32_R<7>;
  const uint32_t group = col / 128, number = col % 128 / 16, lane = col % 16;
  const Philox::ctr_type counter = {{16 * group + lane, row, key.site, key.example}};
  const Philox::key_type philox_key = {{key.key[0], key.key[1]}};
  const Philox::ctr_type block = Philox()(counter, philox_key);
  const uint32_t bits = number % 2 == 0 ? block[number / 2] & 0xFFFFu : block[number / 2] >> 16;
  return bits >= dropout_threshold(rate);
}

}  // namespace lra::ref
