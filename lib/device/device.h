// The machine on which a whole ragged batch is computed: its memory, its queue of work and its matrix products. Two
// implementations stand behind this header, CUDA (device_cuda.cpp) and one emulated on the host (device_emulated.cpp),
// and a program links one of them. What is asked of a device is done in the order in which it was asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/ops/matmul.h"
#include "lib/tensor/view.h"

namespace lra::device {

// What happens to the operands of a product; sums are float32 always.
enum class ProductMode {
  kFloat32,   // nothing
  kTf32,      // rounded to 10 bits of mantissa
  kBfloat16,  // rounded to 7 bits of mantissa
};

// C_i = alpha op(A_i) op(B_i) + beta C_i for i < count, each matrix `next` floats behind the one before.
struct Product {
  int64_t m, n, k;  // C (m, n), op(A) (m, k), op(B) (k, n)
  ConstMatrix a, b;
  Matrix c;
  Transpose ta = Transpose::kNo, tb = Transpose::kNo;
  float alpha = 1.0f, beta = 0.0f;
  int64_t count = 1;
  int64_t a_next = 0, b_next = 0, c_next = 0;
};

class Device {
 public:
  // number: which one, counted round those there are. InputError saying why there is none.
  explicit Device(ProductMode mode = ProductMode::kFloat32, int number = 0);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::string name() const;

  // InputError when its memory is full. 256-byte aligned, uninitialised.
  void* allocate(int64_t bytes);
  void release(void* memory) noexcept;
  // From and to host memory, which is the caller's again on return. download waits for everything before it.
  void upload(void* to, const void* from, int64_t bytes);
  void download(void* to, const void* from, int64_t bytes);
  void fill_zero(Matrix x);

  // Products that do not depend on one another.
  void multiply(std::span<const Product> products);
  void multiply(const Product& product) { multiply(std::span(&product, 1)); }

  // For kernels: where they are queued, asked for by the thread that does, and that one was, with so many bytes of fast
  // memory a team (tiles.h).
  void* queue() const;
  void launched(int64_t fast_memory = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lra::device
