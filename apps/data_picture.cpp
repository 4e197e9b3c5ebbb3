#include "apps/data_picture.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "lib/util/check.h"

namespace lra {
namespace {

size_t place(const GreyPicture& picture, int x, int y) {
  return static_cast<size_t>(y) * static_cast<size_t>(picture.width) + static_cast<size_t>(x);
}

// Each pixel of the smaller picture is halfway between the mean and the brightest of the area it covers: thin strokes
// on black would fade in the mean alone.
GreyPicture shrink(const GreyPicture& picture, int width, int height) {
  // Weights of the source pixels under [begin, end).
  const auto overlap = [](int pixel, double begin, double end) {
    return std::max(0.0, std::min(end, pixel + 1.0) - std::max(begin, static_cast<double>(pixel)));
  };
  GreyPicture result{width, height, std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height))};
  const double across = static_cast<double>(picture.width) / width, down = static_cast<double>(picture.height) / height;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double top = y * down, bottom = top + down, left = x * across, right = left + across;
      double sum = 0.0, area = 0.0, brightest = 0.0;
      for (int row = static_cast<int>(top); row < std::min<double>(picture.height, bottom); ++row) {
        for (int column = static_cast<int>(left); column < std::min<double>(picture.width, right); ++column) {
          const double share = overlap(row, top, bottom) * overlap(column, left, right);
          const double level = picture.pixels[place(picture, column, row)];
          sum += share * level;
          if (share > 1e-9) brightest = std::max(brightest, level);
          area += share;
        }
      }
      result.pixels[place(result, x, y)] =
          static_cast<uint8_t>(area > 0.0 ? std::lround((sum / area + brightest) / 2) : 0);
    }
  }
  return result;
}

// A character a cell of the picture. What is nearly black is left blank, so that the faint rings around
// Pathfinder's strokes do not hide them.
std::string draw_shades(const GreyPicture& cells, const std::vector<std::string_view>& shades) {
  constexpr int kFaint = 32;
  const int steps = static_cast<int>(shades.size()) - 1;
  std::string text;
  for (int y = 0; y < cells.height; ++y) {
    for (int x = 0; x < cells.width; ++x) {
      const int level = cells.pixels[place(cells, x, y)];
      text += shades[static_cast<size_t>(level < kFaint ? 0 : (level * steps + 254) / 255)];
    }
    text += '\n';
  }
  return text;
}

// 16 black, 232-255 a ramp from 8 to 238 in steps of 10, 231 white.
int grey_of_256(int level) {
  if (level < 4) return 16;
  if (level > 246) return 231;
  return 232 + std::clamp((level - 3) / 10, 0, 23);
}

// Two pixels a character: the upper half block in one colour on a ground of the other.
std::string draw_half_blocks(const GreyPicture& picture, bool all_greys) {
  const auto at = [&](int x, int y) -> int {
    if (y >= picture.height) return 0;
    return picture.pixels[place(picture, x, y)];
  };
  const auto colour = [&](int layer, int level) {
    return all_greys ? fmt::format("\x1b[{}8;2;{};{};{}m", layer, level, level, level)
                     : fmt::format("\x1b[{}8;5;{}m", layer, grey_of_256(level));
  };
  std::string text;
  for (int y = 0; y < picture.height; y += 2) {
    int upper = -1, lower = -1;
    for (int x = 0; x < picture.width; ++x) {
      if (at(x, y) != upper) text += colour(3, upper = at(x, y));
      if (at(x, y + 1) != lower) text += colour(4, lower = at(x, y + 1));
      text += "\u2580";
    }
    text += "\x1b[0m\n";
  }
  return text;
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos ||
           value.find("UTF8") != std::string_view::npos || value.find("utf-8") != std::string_view::npos;
  }
  return false;
}

}  // namespace

std::string draw_picture(const GreyPicture& picture, DrawStyle style, int columns) {
  check(picture.width > 0 && picture.height > 0 && columns > 0, "a drawing of {}x{} pixels in {} columns",
        picture.width, picture.height, columns);
  // A character cell is about twice as high as wide.
  const auto height_at = [&](int width, int rows_a_pixel) {
    return std::max(
        1, static_cast<int>(std::lround(static_cast<double>(picture.height) * width / picture.width / rows_a_pixel)));
  };
  if (style == DrawStyle::k256 || style == DrawStyle::k24bit) {
    const int width = std::min(picture.width, columns);
    return draw_half_blocks(width == picture.width ? picture : shrink(picture, width, height_at(width, 1)),
                            style == DrawStyle::k24bit);
  }
  const int width = std::min(2 * picture.width, columns);
  static const std::vector<std::string_view> ascii = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
  static const std::vector<std::string_view> blocks = {" ", "\u2591", "\u2592", "\u2593", "\u2588"};
  return draw_shades(shrink(picture, width, height_at(width, 2)), style == DrawStyle::kAscii ? ascii : blocks);
}

GreyPicture enlarge(const GreyPicture& picture, int factor) {
  GreyPicture result{picture.width * factor, picture.height * factor, {}};
  result.pixels.reserve(picture.pixels.size() * static_cast<size_t>(factor) * static_cast<size_t>(factor));
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x) {
      result.pixels.push_back(picture.pixels[place(picture, x / factor, y / factor)]);
    }
  }
  return result;
}

int64_t sheet_columns(int64_t count) { return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count)))); }

GreyPicture contact_sheet(const std::vector<GreyPicture>& pictures, int gap) {
  constexpr uint8_t kGap = 96;
  check(!pictures.empty(), "a contact sheet of no picture");
  const int count = static_cast<int>(pictures.size());
  const int width = pictures.front().width, height = pictures.front().height;
  const int columns = static_cast<int>(sheet_columns(count));
  const int rows = (count + columns - 1) / columns;
  GreyPicture sheet{columns * (width + gap) - gap, rows * (height + gap) - gap, {}};
  sheet.pixels.assign(static_cast<size_t>(sheet.width) * static_cast<size_t>(sheet.height), kGap);
  for (int i = 0; i < count; ++i) {
    const GreyPicture& picture = pictures[static_cast<size_t>(i)];
    check(picture.width == width && picture.height == height, "pictures of several sizes on one contact sheet");
    const int left = i % columns * (width + gap), top = i / columns * (height + gap);
    for (int y = 0; y < height; ++y) {
      const auto row = picture.pixels.begin() + static_cast<ptrdiff_t>(y) * width;
      std::copy(row, row + width, sheet.pixels.begin() + static_cast<ptrdiff_t>(top + y) * sheet.width + left);
    }
  }
  return sheet;
}

int stdout_columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

DrawStyle stdout_style() {
  const std::string_view terminal = environment("TERM"), colours = environment("COLORTERM");
  const bool blocks = utf8_locale();
  if (isatty(STDOUT_FILENO) == 0 || !blocks || terminal.empty() || terminal == "dumb" ||
      !environment("NO_COLOR").empty()) {
    return blocks ? DrawStyle::kUnicode : DrawStyle::kAscii;
  }
  if (colours == "truecolor" || colours == "24bit" || terminal.ends_with("-direct")) return DrawStyle::k24bit;
  return terminal.find("256") != std::string_view::npos ? DrawStyle::k256 : DrawStyle::kUnicode;
}

}  // namespace lra
