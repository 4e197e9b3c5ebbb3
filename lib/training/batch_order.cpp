// Which rows make up which batch of the endless training stream. A batch is a function of its number alone, so a
// resumed run needs no position but the count of steps.
#include <numeric>

#include "lib/training/trainer.h"
#include "lib/util/check.h"
#include "lib/util/rng.h"

namespace lra {

BatchOrder::BatchOrder(int64_t examples, int batch_size, uint64_t seed, bool shuffled)
    : examples_(examples), batch_size_(batch_size), seed_(seed), shuffled_(shuffled) {
  check(examples > 0 && examples <= UINT32_MAX && batch_size > 0, "{} examples in batches of {}", examples, batch_size);
}

std::vector<int64_t> BatchOrder::rows(int64_t batch) {
  std::vector<int64_t> rows(static_cast<size_t>(batch_size_));
  for (int64_t i = 0; i < batch_size_; ++i) {
    const int64_t at = batch * batch_size_ + i;
    const int64_t epoch = at / examples_, place = at % examples_;
    if (shuffled_ && epoch != epoch_) {
      order_ = permutation(static_cast<uint32_t>(examples_), seed_, static_cast<uint64_t>(epoch));
      epoch_ = epoch;
    }
    rows[i] = shuffled_ ? order_[place] : place;
  }
  return rows;
}

}  // namespace lra
