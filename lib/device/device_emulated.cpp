// A device that is not there: its memory is the host's, its queue is done at once, its products are plain loops whose
// operands are rounded as the mode says. For tests; new memory holds NaN, so that a kernel which reads what nobody
// wrote spoils its result.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "lib/device/device.h"
#include "lib/util/check.h"

namespace lra::device {
namespace {

// To nearest even, `bits` of the mantissa's 23 left.
float rounded(float x, int bits) {
  if (!std::isfinite(x) || bits == 23) return x;
  const int dropped = 23 - bits;
  uint32_t word = std::bit_cast<uint32_t>(x);
  word += (1u << (dropped - 1)) - 1 + (word >> dropped & 1u);
  return std::bit_cast<float>(word >> dropped << dropped);
}

void multiply_one(const Product& p, int64_t i, int bits) {
  const float *a = p.a.data + i * p.a_next, *b = p.b.data + i * p.b_next;
  float* c = p.c.data + i * p.c_next;
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t col = 0; col < p.n; ++col) {
      double sum = 0.0;  // a tree of floats on a device: the plain order would be worse than any of them
      for (int64_t e = 0; e < p.k; ++e) {
        const float x = p.ta == Transpose::kNo ? a[row * p.a.stride + e] : a[e * p.a.stride + row];
        const float y = p.tb == Transpose::kNo ? b[e * p.b.stride + col] : b[col * p.b.stride + e];
        sum += static_cast<double>(rounded(x, bits)) * rounded(y, bits);
      }
      float& to = c[row * p.c.stride + col];
      const float product = p.alpha * static_cast<float>(sum);
      to = p.beta == 0.0f ? product : product + p.beta * to;
    }
  }
}

}  // namespace

struct Device::State {
  int bits;  // of an operand's mantissa
};

Device::Device(ProductMode mode, int)
    : state_(std::make_unique<State>(State{mode == ProductMode::kFloat32 ? 23
                                           : mode == ProductMode::kTf32  ? 10
                                                                         : 7})) {}
Device::~Device() = default;

std::string Device::name() const { return "emulated device"; }

void* Device::allocate(int64_t bytes) {
  void* memory = ::operator new (static_cast<size_t>(bytes), std::align_val_t{256});
  std::memset(memory, 0xFF, static_cast<size_t>(bytes));
  return memory;
}
void Device::release(void* memory) noexcept { ::operator delete (memory, std::align_val_t{256}); }
void Device::upload(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}
void Device::download(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}
void Device::fill_zero(Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, 0.0f);
}

void Device::multiply(std::span<const Product> products) {
  for (const Product& product : products) {
    for (int64_t i = 0; i < product.count; ++i) multiply_one(product, i, state_->bits);
  }
}

void* Device::queue() const { return nullptr; }
void Device::launched(int64_t) {}

}  // namespace lra::device
