// Grows the dashed contours of a Pathfinder picture, stroke by stroke, so that they keep apart (Linsley et al. 2018).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "datasets/pathfinder/geometry.h"
#include "datasets/pathfinder/settings.h"
#include "datasets/pathfinder/strokes.h"
#include "lib/util/rng.h"

namespace lra::pathfinder {

struct PlacedStroke {
  Point at;             // where the stamp's middle lies
  Direction direction;  // in which the stroke is drawn from there
};

// A contour grows at its head: the next stroke lies on a circle around the pivot, which advances by a stroke and its
// gaps a step.
struct Contour {
  Point origin;  // where the first stroke begins
  Point end;     // where the last one ends
  Point pivot;
  Direction direction;
  std::vector<PlacedStroke> strokes;
};

struct Contours {
  std::array<Contour, 2> targets;
  std::vector<Contour> distractors;
};

class ContourGrower {
 public:
  // Keeps references.
  ContourGrower(const Settings& settings, const Brushes& brushes, Random& random);

  // Draws until a picture comes out: two whole targets, and the distractors that found room.
  Contours grow();

 private:
  bool inside(Point at) const;
  uint8_t& occupied(Point at) { return occupancy_[place(at)]; }
  size_t place(Point at) const;

  std::optional<std::array<Contour, 2>> grow_targets();
  bool grow_by_one(Contour& contour);

  Contour first_stroke(Point tail, Direction direction) const;
  bool is_inside(const Contour& contour) const;
  bool fits(const Stroke& stroke, Point at) const;
  void occupy(const PlacedStroke& stroke);
  void clear_occupancy();
  // Draws one of 360 degrees; nothing where no first stroke has it.
  std::optional<std::pair<FirstStroke, Direction>> draw_first_stroke();
  std::optional<Contour> grow_distractor();
  // Places where a stroke can begin without touching what is occupied.
  std::vector<Point> free_places(const Stroke& stroke) const;

  const Settings& settings_;
  const Brushes& brushes_;
  Random& random_;
  std::vector<Point> heads_, gap_;  // candidates around a pivot; pixels a candidate's own surroundings
  std::vector<uint8_t> occupancy_;  // [size * size], 255 = taken
};

}  // namespace lra::pathfinder
