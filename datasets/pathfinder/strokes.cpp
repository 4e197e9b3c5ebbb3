#include "datasets/pathfinder/strokes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace lra::pathfinder {
namespace {

// A square of black pixels that is drawn on in white.
class Drawing {
 public:
  explicit Drawing(int side) : side_(side), pixels_(static_cast<size_t>(side) * static_cast<size_t>(side)) {}

  // What lies outside is cut off.
  void dot(Point at) {
    if (at.row < 0 || at.column < 0 || at.row >= side_ || at.column >= side_) return;
    pixels_[static_cast<size_t>(at.row) * static_cast<size_t>(side_) + static_cast<size_t>(at.column)] = 255;
  }

  // A straight line, both ends included: along its longer axis a pixel a step, rounded half up (Bresenham 1965), and
  // across it as many pixels as `width` asks for.
  void line(Point from, Point to, int width) {
    const Point way = to - from;
    const int rows = std::abs(way.row), columns = std::abs(way.column);
    const int steps = std::max({rows, columns, 1});
    const int shorter = std::min(rows, columns);
    const double slant = std::sqrt(static_cast<double>(rows * rows + columns * columns)) / steps;
    const int across = std::max(1, static_cast<int>(std::lround(width * slant)));
    const Point signs{way.row < 0 ? -1 : 1, way.column < 0 ? -1 : 1};
    for (int step = 0; step <= std::max(rows, columns); ++step) {
      const int aside = (2 * step * shorter + steps) / (2 * steps);
      for (int i = 0; i < across; ++i) {
        const int thick = i - across / 2;
        const Point at = columns > rows ? Point{signs.row * aside + thick, signs.column * step}
                                        : Point{signs.row * step, signs.column * aside + thick};
        dot(from + at);
      }
    }
  }

  // The white area grown by `brush` around each of its pixels.
  Drawing dilated(std::span<const Point> brush) const {
    Drawing result(side_);
    for (int row = 0; row < side_; ++row) {
      for (int column = 0; column < side_; ++column) {
        if (pixels_[static_cast<size_t>(row) * static_cast<size_t>(side_) + static_cast<size_t>(column)] == 0) continue;
        for (const Point offset : brush) result.dot(Point{row, column} + offset);
      }
    }
    return result;
  }

  std::span<const uint8_t> pixels() const { return pixels_; }

 private:
  int side_;
  std::vector<uint8_t> pixels_;
};

}  // namespace

Brushes::Brushes(const Settings& settings)
    : reach_(settings.stroke_length * kMagnification),
      spot_(disc(settings.marker_radius * kMagnification)),
      whole_(settings.size * kMagnification, settings.size) {
  const int radius = settings.stroke_length + 2 * settings.margin;
  const int middle = radius * kMagnification, side = 2 * middle + 1;
  const LanczosReduction reduce(side, 2 * radius + 1);
  const int width = static_cast<int>(std::lround(settings.stroke_width * kMagnification));
  const std::vector<Point> gap = disc(settings.margin * kMagnification);
  for (int row = -reach_; row <= reach_; ++row) {
    for (int column = -reach_; column <= reach_; ++column) {
      Drawing drawing(side);
      drawing.line({middle, middle}, {middle + row, middle + column}, width);
      strokes_.push_back(
          {.ink = {radius, reduce(drawing.pixels())}, .footprint = {radius, reduce(drawing.dilated(gap).pixels())}});
    }
  }
}

const Stroke& Brushes::along(Direction direction) const {
  const int row = static_cast<int>(std::ceil(reach_ * direction.row - 1e-9));
  const int column = static_cast<int>(std::ceil(reach_ * direction.column - 1e-9));
  const int ways = 2 * reach_ + 1;
  const int index = (row + reach_) * ways + column + reach_;
  return strokes_[static_cast<size_t>(index)];
}

std::vector<uint8_t> Brushes::markers(std::span<const Point> centers) const {
  Drawing drawing(whole_.from());
  for (const Point center : centers) {
    for (const Point offset : spot_) {
      drawing.dot(Point{center.row * kMagnification, center.column * kMagnification} + offset);
    }
  }
  return whole_(drawing.pixels());
}

}  // namespace lra::pathfinder
