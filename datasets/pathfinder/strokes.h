// Strokes of Pathfinder pictures as they are stamped: drawn several times larger, reduced, and kept, since only few
// differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datasets/pathfinder/geometry.h"
#include "datasets/pathfinder/lanczos.h"
#include "datasets/pathfinder/settings.h"

namespace lra::pathfinder {

inline constexpr int kMagnification = 2;  // of what is drawn before it is reduced

// A small square picture with the stroke's first point in its middle.
struct Stamp {
  int radius = 0;
  std::vector<uint8_t> levels;  // [side() * side()]
  int side() const { return 2 * radius + 1; }
};

struct Stroke {
  Stamp ink;        // full contrast = 255
  Stamp footprint;  // with the gap kept around it
};

// What pictures of one size are made of. Threads share it.
class Brushes {
 public:
  explicit Brushes(const Settings& settings);

  // The stroke that begins in the stamp's middle and runs in `direction`.
  const Stroke& along(Direction direction) const;
  // The whole picture with the markers' discs around `centers`, [size * size].
  std::vector<uint8_t> markers(std::span<const Point> centers) const;

 private:
  int reach_;                    // magnified length
  std::vector<Stroke> strokes_;  // by row and column of the last pixel, -reach_ .. reach_ each
  std::vector<Point> spot_;      // pixels of a magnified marker around its center
  LanczosReduction whole_;       // of a magnified picture
};

}  // namespace lra::pathfinder
