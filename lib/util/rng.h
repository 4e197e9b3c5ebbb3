// Random numbers that depend on nothing but their key and counter: Philox4x32 of Random123 (Salmon et al. 2011,
// "Parallel random numbers: as easy as 1, 2, 3"). Dropout uses 7 rounds (the paper's shortest variant that passes
// BigCrush), everything else 10.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace lra {

// Keeps the uses of one --seed apart.
enum class RandomStream : uint32_t { kInit = 1, kOrder = 2, kDropout = 3, kData = 4 };

// Philox key of a use of the seed: SplitMix64 of (seed, stream, index), so that neighbouring seeds share nothing.
std::array<uint32_t, 2> random_key(uint64_t seed, RandomStream stream, uint64_t index);

// A sequential generator for host-side draws (initial weights, permutations, generated data).
class Random {
 public:
  Random(uint64_t seed, RandomStream stream, uint64_t index = 0);

  uint32_t next();             // uniform in [0, 2^32)
  uint32_t below(uint32_t n);  // uniform in [0, n), n >= 1, without modulo bias
  double uniform();            // uniform in [0, 1), 53 bits
  double normal();             // N(0, 1), Box-Muller

 private:
  std::array<uint32_t, 2> key_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  double spare_ = 0.0;
  bool has_spare_ = false;
};

// Fisher-Yates permutation of 0 … n-1, a function of (seed, epoch) alone.
std::vector<uint32_t> permutation(uint32_t n, uint64_t seed, uint64_t epoch);

}  // namespace lra
