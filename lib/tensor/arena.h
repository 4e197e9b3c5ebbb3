// Scratch memory of one task: a bump allocator over chunks that are kept for the next use. Not shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/tensor/view.h"

namespace lra {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;

  // 64-byte aligned, uninitialised, valid until the mark before it is released.
  float* floats(int64_t count);
  Matrix matrix(int64_t rows, int64_t cols) { return {floats(rows * cols), rows, cols}; }

  struct Mark {
    size_t chunk, used;
  };
  Mark mark() const { return {chunk_, used_}; }
  void release(Mark m) { chunk_ = m.chunk, used_ = m.used; }
  // The most memory that was in use at once since the last reset, gaps at the ends of chunks included.
  int64_t peak_bytes() const { return static_cast<int64_t>(peak_ * sizeof(float)); }
  // Releases everything; what lay in several chunks comes from one the next time, so that sequences of growing length
  // do not pile up chunks that are each too small.
  void reset();

  // Frees everything taken since its construction on leaving the scope.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
    ~Scope() { arena_.release(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    Mark mark_;
  };

 private:
  struct Chunk {
    std::unique_ptr<float, void (*)(void*)> data;
    size_t size;  // floats
  };
  void add_chunk(size_t size);

  std::vector<Chunk> chunks_;
  size_t chunk_ = 0, used_ = 0;
  size_t peak_ = 0;  // floats
};

}  // namespace lra
