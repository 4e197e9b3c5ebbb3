#include "lib/diagnostics/canvas.h"

#include <algorithm>
#include <cstddef>

#include "lib/diagnostics/font.h"

namespace lra {

Canvas::Canvas(int width, int height)
    : width_(width), height_(height), rgb_(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 255) {}

void Canvas::fill(int x, int y, int width, int height, Colour colour) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row) {
    for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column) {
      std::copy(colour.begin(), colour.end(),
                rgb_.begin() + (static_cast<std::ptrdiff_t>(row) * width_ + column) * std::ssize(colour));
    }
  }
}

void Canvas::frame(int x, int y, int width, int height, Colour colour) {
  fill(x, y, width, 1, colour), fill(x, y + height - 1, width, 1, colour);
  fill(x, y, 1, height, colour), fill(x + width - 1, y, 1, height, colour);
}

void Canvas::text(int x, int y, std::string_view text, int scale) {
  for (const char c : text) {
    for (int column = 0; column < kGlyphWidth; ++column) {
      for (int row = 0; row < kGlyphHeight; ++row) {
        if (glyph_pixel(c, column, row)) fill(x + column * scale, y + row * scale, scale, scale, kBlack);
      }
    }
    x += kGlyphAdvance * scale;
  }
}

void Canvas::text_upwards(int x, int y, std::string_view text, int scale) {
  for (const char c : text) {
    for (int column = 0; column < kGlyphWidth; ++column) {
      for (int row = 0; row < kGlyphHeight; ++row) {
        if (glyph_pixel(c, column, row)) fill(x + row * scale, y - (column + 1) * scale, scale, scale, kBlack);
      }
    }
    y -= kGlyphAdvance * scale;
  }
}

int text_width(std::string_view text, int scale) {
  return text.empty() ? 0 : (static_cast<int>(text.size()) * kGlyphAdvance - 1) * scale;
}

int text_height(int scale) { return kGlyphHeight * scale; }

}  // namespace lra
