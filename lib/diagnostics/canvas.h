// Pictures in memory with rectangles and text; whoever has a PNG writer stores them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lra {

using Colour = std::array<uint8_t, 3>;  // red, green, blue
inline constexpr Colour kWhite = {255, 255, 255}, kBlack = {0, 0, 0};

class Canvas {
 public:
  Canvas(int width, int height);  // white

  int width() const { return width_; }
  int height() const { return height_; }
  const std::vector<uint8_t>& rgb() const { return rgb_; }  // three bytes a pixel, row by row

  // What lies outside the canvas is left out, here and below.
  void fill(int x, int y, int width, int height, Colour colour);
  void frame(int x, int y, int width, int height, Colour colour);  // one pixel wide, inside
  // (x, y): the top left corner; a pixel of the font becomes scale x scale pixels.
  void text(int x, int y, std::string_view text, int scale);
  // Read from bottom to top; (x, y): the bottom left corner of the canvas area it takes.
  void text_upwards(int x, int y, std::string_view text, int scale);

 private:
  int width_, height_;
  std::vector<uint8_t> rgb_;
};

// Pixels that a line of text takes.
int text_width(std::string_view text, int scale);
int text_height(int scale);

}  // namespace lra
