// Reduces grey pictures with a Lanczos filter of three lobes, widened by the factor of reduction (Lanczos 1979;
// Turkowski 1990), in whole numbers as image libraries do it: weights of 22 bits, and a picture of bytes between the
// two passes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lra::pathfinder {

class LanczosReduction {
 public:
  // Square pictures of side `from` become squares of side `to` <= `from`.
  LanczosReduction(int from, int to);

  // picture: [from * from]. Returns [to * to].
  std::vector<uint8_t> operator()(std::span<const uint8_t> picture) const;

  int from() const { return from_; }

 private:
  // Pixel o of the result is the sum of weights[first .. last) of pixels begin, begin + 1, ...
  struct Taps {
    int begin = 0;
    std::vector<int32_t> weights;
  };

  // Reduces rows and writes the result turned over its diagonal: twice in a row gives the reduced picture upright.
  std::vector<uint8_t> reduce_rows(std::span<const uint8_t> picture, int rows) const;

  int from_, to_;
  std::vector<Taps> taps_;  // [to]
};

}  // namespace lra::pathfinder
