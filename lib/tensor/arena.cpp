#include "lib/tensor/arena.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace lra {

float* Arena::floats(int64_t count) {
  constexpr size_t kAlign = 16;               // floats: one cache line
  constexpr size_t kSmallestChunk = 1 << 18;  // floats: 1 MiB
  const size_t need = (static_cast<size_t>(count) + kAlign - 1) / kAlign * kAlign;
  while (chunk_ < chunks_.size() && used_ + need > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    add_chunk(std::max(need, kSmallestChunk));
    used_ = 0;
  }
  float* result = chunks_[chunk_].data.get() + used_;
  used_ += need;
  size_t in_use = used_;
  for (size_t i = 0; i < chunk_; ++i) in_use += chunks_[i].size;
  peak_ = std::max(peak_, in_use);
  return result;
}

void Arena::add_chunk(size_t size) {
  float* data = static_cast<float*>(std::aligned_alloc(64, size * sizeof(float)));
  if (data == nullptr) throw std::bad_alloc();
  chunks_.push_back({{data, std::free}, size});
}

void Arena::reset() {
  release({0, 0});
  peak_ = 0;
  if (chunks_.size() < 2) return;
  size_t total = 0;
  for (const Chunk& chunk : chunks_) total += chunk.size;
  chunks_.clear();
  add_chunk(total);
}

}  // namespace lra
