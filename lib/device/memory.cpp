#include "lib/device/memory.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace lra::device {

Scratch::Scratch(Device& device) : device_(device) {
  const char* exact = std::getenv("LRA_EXACT_SCRATCH");
  exact_ = exact != nullptr && std::string_view(exact) == "1";
}

void Scratch::give_back(size_t block, int64_t used) {
  block_ = block, used_ = used;
  while (exact_ && blocks_.size() > block) blocks_.pop_back();
}

std::byte* Scratch::take_bytes(int64_t bytes) {
  if (exact_) {
    blocks_.emplace_back(device_, std::max<int64_t>(bytes, 1));
    block_ = blocks_.size();
    return blocks_.back().data();
  }
  constexpr int64_t kAlignment = 256, kSmallest = int64_t{16} << 20;
  bytes = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size()) ++block_, used_ = 0;
  if (block_ == blocks_.size()) {
    // Twice what there was: a batch of another shape finds room after a few.
    const int64_t last = blocks_.empty() ? 0 : blocks_.back().size();
    blocks_.emplace_back(device_, std::max({bytes, kSmallest, std::min(2 * last, int64_t{1} << 30)}));
    used_ = 0;
  }
  std::byte* at = blocks_[block_].data() + used_;
  used_ += bytes;
  return at;
}

}  // namespace lra::device
