// PNG pictures in memory, through libpng: the grey ones that the Pathfinder release consists of, and those that
// programs draw.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lra {

inline constexpr int kLargestPngSide = 16384;  // pixels, read or written

struct GreyPicture {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // row by row, 0 = black
};

// Only 8-bit grey pictures, interlaced or not, are taken. InputError, whose text is the reason alone (the caller knows
// the file): "empty", "no PNG", "cut short", "damaged", "16 bits a channel", "RGB colours", "palette", "alpha channel",
// "fewer than 8 bits a pixel", "over 16384 pixels wide or high". Bytes after the picture's end are ignored, as every
// viewer does.
GreyPicture read_grey_png(std::string_view bytes);

// The same, where another size than `width` x `height` is refused before its pixels are looked at ("33 x 33 pixels, not
// 32 x 32"). `pixels` holds width * height bytes.
void read_grey_png(std::string_view bytes, int width, int height, std::span<uint8_t> pixels);

// The same picture gives the same bytes on every run and thread (they may change with libpng or zlib). Sides from 1 to
// kLargestPngSide.
std::string write_grey_png(const GreyPicture& picture);
// `rgb`: three bytes a pixel.
std::string write_rgb_png(int width, int height, std::span<const uint8_t> rgb);

}  // namespace lra
