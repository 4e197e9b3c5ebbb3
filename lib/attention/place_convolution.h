// Depthwise convolution over the places of the padded sequence, of which only those of the tokens hold numbers, all
// others being 0: which tokens meet under which tap.
#pragma once

#include <cstdint>
#include <span>

namespace lra {

struct ConvolutionShape {
  int64_t taps;       // along the sequence, odd: tap t of a token at place p lies at place p + t - taps / 2
  int64_t width = 0;  // above 0: 3 x 3 taps instead, the sequence read as rows of that many places
};

// body(tap, i, j): token j lies under that tap of token i; tokens i and, of each, taps in their order. Places grow.
template <class Body>
void for_each_neighbour(const ConvolutionShape& shape, std::span<const int32_t> places, const Body& body) {
  const int64_t tokens = std::ssize(places);
  // Tokens at the places first … last have the taps from first_tap on. `from` follows windows, which move on with i.
  const auto meet = [&](int64_t i, int64_t first, int64_t last, int64_t first_tap, int64_t& from) {
    while (from < tokens && places[from] < first) ++from;
    for (int64_t j = from; j < tokens && places[j] <= last; ++j) body(first_tap + places[j] - first, i, j);
  };
  int64_t from[3] = {};
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t place = places[i];
    if (shape.width == 0) {
      meet(i, place - shape.taps / 2, place + shape.taps / 2, 0, from[0]);
      continue;
    }
    const int64_t column = place % shape.width;
    const int64_t left = column > 0 ? -1 : 0, right = column + 1 < shape.width ? 1 : 0;
    for (int64_t line = 0; line < 3; ++line) {
      const int64_t below = place + (line - 1) * shape.width;
      meet(i, below + left, below + right, 3 * line + left + 1, from[line]);
    }
  }
}

}  // namespace lra
