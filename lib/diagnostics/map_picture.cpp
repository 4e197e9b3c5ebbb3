#include "lib/diagnostics/map_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "lib/util/check.h"

namespace lra {
namespace {

constexpr Colour kNoEntry = {208, 208, 208};
constexpr int kGap = 8;

// Equally far apart, from low to high.
constexpr Colour kDivergingStops[] = {{5, 48, 97}, {67, 147, 195}, {255, 255, 255}, {214, 96, 77}, {103, 0, 31}};
constexpr Colour kSequentialStops[] = {{255, 255, 255}, {198, 219, 239}, {107, 174, 214}, {33, 113, 181}, {8, 29, 68}};

Colour between(std::span<const Colour> stops, double place) {
  const double at = std::clamp(place, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const size_t first = std::min(static_cast<size_t>(at), stops.size() - 2);
  const double share = at - static_cast<double>(first);
  Colour colour;
  for (size_t i = 0; i < colour.size(); ++i) {
    colour[i] = static_cast<uint8_t>(std::lround((1.0 - share) * stops[first][i] + share * stops[first + 1][i]));
  }
  return colour;
}

// The value with that share of all at or below it; values are reordered.
double quantile(std::vector<float>& values, double share) {
  const auto at = static_cast<ptrdiff_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

std::string number_text(double value) { return fmt::format("{:.3g}", value); }

// Distance of the numbers at an axis of so many tokens: 1, 2 or 5 times a power of ten, at most six of them.
int64_t tick_step(int64_t tokens) {
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t digit : {1, 2, 5}) {
      if ((tokens - 1) / (digit * power) < 6) return digit * power;
    }
  }
}

// Pixels that a value takes.
int value_pixels(const AttentionMap& map, int side) { return std::max(1, side / static_cast<int>(map.side)); }

void paint(Canvas& canvas, int left, int top, const AttentionMap& map, int pixels, const ColourScale& scale) {
  for (int64_t query = 0; query < map.side; ++query) {
    for (int64_t key = 0; key < map.side; ++key) {
      canvas.fill(left + static_cast<int>(key) * pixels, top + static_cast<int>(query) * pixels, pixels, pixels,
                  scale.colour(map.at(query, key)));
    }
  }
}

// With numbers at its right.
void draw_bar(Canvas& canvas, int left, int top, int width, int height, const ColourScale& scale) {
  constexpr int kTicks = 5;
  for (int y = 0; y < height; ++y) {
    const double share = 1.0 - static_cast<double>(y) / std::max(1, height - 1);
    canvas.fill(left, top + y, width, 1, scale.colour(scale.low + share * (scale.high - scale.low)));
  }
  canvas.frame(left - 1, top - 1, width + 2, height + 2, kBlack);
  for (int i = 0; i < kTicks; ++i) {
    const double share = static_cast<double>(i) / (kTicks - 1);
    const int y = top + static_cast<int>(std::lround((1.0 - share) * (height - 1)));
    canvas.fill(left + width + 1, y, 5, 1, kBlack);
    canvas.text(left + width + 10, y - text_height(2) / 2 + 1,
                number_text(scale.low + share * (scale.high - scale.low)), 2);
  }
}

void draw_axes(Canvas& canvas, int left, int top, const AttentionMap& map, int pixels) {
  const int side = static_cast<int>(map.side) * pixels, bottom = top + side;
  canvas.frame(left - 1, top - 1, side + 2, side + 2, kBlack);
  const int64_t step = tick_step(map.tokens);
  for (int64_t token = 0; token < map.tokens; token += step) {
    // The middle of the token's place.
    const int at = static_cast<int>((static_cast<double>(token) + 0.5) * pixels / static_cast<double>(map.block));
    const std::string number = std::to_string(token);
    canvas.fill(left + at, bottom + 1, 1, 5, kBlack);
    canvas.text(left + at - text_width(number, 2) / 2, bottom + 9, number, 2);
    canvas.fill(left - 6, top + at, 5, 1, kBlack);
    canvas.text(left - 10 - text_width(number, 2), top + at - text_height(2) / 2 + 1, number, 2);
  }
  canvas.text(left + (side - text_width("key", 2)) / 2, bottom + 13 + text_height(2), "key", 2);
  canvas.text_upwards(kGap, top + (side + text_width("query", 2)) / 2, "query", 2);
}

}  // namespace

ColourScale ColourScale::of(const AttentionMap& map) {
  std::vector<float> values;
  for (const float value : map.values) {
    if (std::isfinite(value)) values.push_back(value);
  }
  ColourScale scale;
  if (values.empty()) return scale;
  scale.diverging = std::any_of(values.begin(), values.end(), [](float value) { return value < 0.0f; });
  if (scale.diverging) {
    for (float& value : values) value = std::abs(value);
  }
  const double largest = *std::max_element(values.begin(), values.end());
  scale.high = quantile(values, 0.995);
  // So sparse that nearly all is 0.
  if (scale.high == 0.0) scale.high = largest;
  scale.low = scale.diverging ? -scale.high : std::min<double>(quantile(values, 0.005), scale.high);
  return scale;
}

Colour ColourScale::colour(double value) const {
  if (std::isnan(value)) return kNoEntry;
  // A map of one value is in the middle.
  const double place = high > low ? (value - low) / (high - low) : value < low ? 0.0 : value > high ? 1.0 : 0.5;
  return diverging ? between(kDivergingStops, place) : between(kSequentialStops, place);
}

Canvas draw_map(const AttentionMap& map, const std::vector<std::string>& title) {
  check(map.side > 0, "a picture of an empty attention matrix");
  constexpr int kBarWidth = 24, kLine = 14;
  const ColourScale scale = ColourScale::of(map);
  const int pixels = value_pixels(map, kMapSide), side = static_cast<int>(map.side) * pixels;
  std::vector<std::string> lines = title;
  const char* limits = scale.diverging ? "colours reach to the 99.5th percentile of |weight|"
                                       : "colours reach from the 0.5th to the 99.5th percentile";
  lines.push_back(map.block == 1 ? fmt::format("{} tokens; {}", map.tokens, limits)
                                 : fmt::format("{} tokens, a pixel is the mean of {} x {} weights; {}", map.tokens,
                                               map.block, map.block, limits));
  const int left = 3 * kGap + text_height(2) + text_width(std::to_string(map.tokens), 2);
  const int top = 2 * kGap + text_height(2) + static_cast<int>(lines.size()) * kLine + text_height(2);
  const int bar = left + side + 3 * kGap;
  int number_width = text_width("weight", 2) - kBarWidth;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    number_width = std::max(number_width, text_width(number_text(scale.low + share * (scale.high - scale.low)), 2));
  }
  int width = bar + kBarWidth + 10 + number_width + kGap;
  width = std::max(width, text_width(lines.front(), 2) + 2 * kGap);
  for (size_t i = 1; i < lines.size(); ++i) width = std::max(width, text_width(lines[i], 1) + 2 * kGap);

  Canvas canvas(width, top + side + 13 + 2 * text_height(2) + kGap);
  canvas.text(kGap, kGap, lines.front(), 2);
  for (size_t i = 1; i < lines.size(); ++i) {
    canvas.text(kGap, kGap + text_height(2) + 6 + static_cast<int>(i - 1) * kLine, lines[i], 1);
  }
  paint(canvas, left, top, map, pixels, scale);
  draw_axes(canvas, left, top, map, pixels);
  canvas.text(bar, top - text_height(2) - 10, "weight", 2);
  draw_bar(canvas, bar, top, kBarWidth, side, scale);
  return canvas;
}

Canvas draw_sheet(const std::vector<SheetRow>& rows, const std::string& title) {
  constexpr int kTile = 176, kLine = 11;
  check(!rows.empty() && std::ssize(rows) <= kMostSheetRows, "a sheet of {} rows", rows.size());
  size_t columns = 0;
  int label = 0;
  for (const SheetRow& row : rows) {
    columns = std::max(columns, row.maps.size());
    for (const std::string& line : row.label) label = std::max(label, text_width(line, 1));
  }
  const size_t shown = std::min<size_t>(columns, kMostSheetColumns);
  const std::string head =
      shown == columns ? title : fmt::format("{}; the first {} of {} heads", title, shown, columns);
  const int left = label + 2 * kGap, top = 3 * kGap + text_height(2) + kLine;
  const int across = kTile + kGap, down = kTile + kLine + kGap;
  Canvas canvas(std::max(left + static_cast<int>(shown) * across, text_width(head, 2) + 2 * kGap),
                top + static_cast<int>(rows.size()) * down);
  canvas.text(kGap, kGap, head, 2);
  for (size_t r = 0; r < rows.size(); ++r) {
    const int y = top + static_cast<int>(r) * down;
    for (size_t i = 0; i < rows[r].label.size(); ++i) {
      canvas.text(kGap, y + static_cast<int>(i) * kLine, rows[r].label[i], 1);
    }
    for (size_t c = 0; c < std::min(shown, rows[r].maps.size()); ++c) {
      const int x = left + static_cast<int>(c) * across;
      const AttentionMap& whole = rows[r].maps[c];
      const AttentionMap map = reduced(whole, (whole.side + kTile - 1) / kTile);
      const ColourScale scale = ColourScale::of(map);
      const int pixels = value_pixels(map, kTile), side = static_cast<int>(map.side) * pixels;
      if (r == 0) canvas.text(x, top - kLine - 2, fmt::format("layer {} head {}", map.layer, map.head), 1);
      paint(canvas, x, y, map, pixels, scale);
      canvas.frame(x - 1, y - 1, side + 2, side + 2, kBlack);
      canvas.text(x, y + side + 3, number_text(scale.low) + " to " + number_text(scale.high), 1);
    }
  }
  return canvas;
}

}  // namespace lra
