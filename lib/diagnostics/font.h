// A bitmap font for numbers and names in pictures: ASCII, 5 by 7 pixels and a row below the base line.
#pragma once

#include <cstdint>

namespace lra {

constexpr int kGlyphWidth = 5, kGlyphHeight = 8;
constexpr int kGlyphAdvance = kGlyphWidth + 1;

// Whether the pixel in column x and row y belongs to the character; what is not printable ASCII is drawn as '?'.
bool glyph_pixel(char c, int x, int y);

}  // namespace lra
