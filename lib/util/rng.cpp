#include "lib/util/rng.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace lra {
namespace {

uint64_t split_mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 2> random_key(uint64_t seed, RandomStream stream, uint64_t index) {
  const uint64_t key = split_mix(split_mix(split_mix(seed) + static_cast<uint64_t>(stream)) + index);
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

Random::Random(uint64_t seed, RandomStream stream, uint64_t index) : key_(random_key(seed, stream, index)) {}

uint32_t Random::next() {
  if (used_ == 4) {
    const r123::Philox4x32::ctr_type counter = {
        {static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), 0, 0}};
    const r123::Philox4x32::key_type key = {{key_[0], key_[1]}};
    const auto out = r123::Philox4x32()(counter, key);
    for (int i = 0; i < 4; ++i) block_[i] = out[i];
    ++counter_;
    used_ = 0;
  }
  return block_[used_++];
}

uint32_t Random::below(uint32_t n) {
  // Lemire's multiply-shift with rejection.
  uint64_t product = static_cast<uint64_t>(next()) * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t threshold = (0u - n) % n;
    while (static_cast<uint32_t>(product) < threshold) product = static_cast<uint64_t>(next()) * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

double Random::uniform() {
  const uint64_t high = next() >> 5, low = next() >> 6;
  return static_cast<double>(high * 67108864u + low) * 0x1p-53;
}

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

std::vector<uint32_t> permutation(uint32_t n, uint64_t seed, uint64_t epoch) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  Random random(seed, RandomStream::kOrder, epoch);
  for (uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace lra
