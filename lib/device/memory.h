// Memory of a device: an owned block of numbers, and scratch memory that is taken and given back in scopes.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/device/device.h"

namespace lra::device {

template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, int64_t size)
      : device_(&device), data_(static_cast<T*>(device.allocate(size * int64_t{sizeof(T)}))), size_(size) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) device_->release(data_);
  }

  T* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  Device* device_ = nullptr;
  T* data_ = nullptr;
  int64_t size_ = 0;
};

// A bump allocator over blocks that are kept for the next use. With LRA_EXACT_SCRATCH=1 in the environment every piece
// is memory of its own, given back when its scope ends, so that sanitizers see what goes over its edge.
class Scratch {
 public:
  explicit Scratch(Device& device);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Uninitialised, valid until the scope it was taken in ends.
  template <class T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(take_bytes(count * int64_t{sizeof(T)}));
  }
  Matrix matrix(int64_t rows, int64_t cols) { return {take<float>(rows * cols), rows, cols}; }
  template <class T>
  T* upload(std::span<const T> values) {
    T* data = take<T>(std::ssize(values));
    device_.upload(data, values.data(), static_cast<int64_t>(values.size_bytes()));
    return data;
  }

  class Scope {
   public:
    explicit Scope(Scratch& scratch) : scratch_(scratch), block_(scratch.block_), used_(scratch.used_) {}
    ~Scope() { scratch_.give_back(block_, used_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Scratch& scratch_;
    size_t block_;
    int64_t used_;
  };

 private:
  std::byte* take_bytes(int64_t bytes);
  void give_back(size_t block, int64_t used);

  Device& device_;
  bool exact_;
  std::vector<Buffer<std::byte>> blocks_;
  size_t block_ = 0;  // in use, with those before it
  int64_t used_ = 0;  // bytes of it
};

}  // namespace lra::device
