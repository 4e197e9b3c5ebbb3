// Places and directions on a Pathfinder picture (Linsley et al. 2018). Rows count downward; a direction at angle t
// moves by (sin t, cos t), and a moved point is rounded up to whole pixels.
#pragma once

#include <vector>

namespace lra::pathfinder {

struct Point {
  int row = 0, column = 0;
  Point operator+(Point other) const { return {row + other.row, column + other.column}; }
  Point operator-(Point other) const { return {row - other.row, column - other.column}; }
  bool operator==(const Point&) const = default;
};

// (sin t, cos t). Straight down and straight left keep the rounding error of sin and cos there, as the original does:
// see `moved`.
struct Direction {
  double row = 0.0, column = 1.0;
  Direction reversed() const { return {-row, -column}; }
};

Direction direction_of_degrees(int degrees);
Direction direction_of(Point offset);  // any but (0, 0)

// The angle between two directions, in [0, pi].
double angle_between(Direction a, Direction b);

// `from` moved by `distance` pixels, rounded up. A straight move down or up at a column below 4, or left at a row below
// 8, ends one pixel further right or down: the rounding error of cos(pi/2) or sin(pi) survives the sum there, and
// rounding up makes a pixel of it. The original's contours leave the border in this way, so it is kept.
Point moved(Point from, Direction direction, double distance);

// Where the circle of `radius` around (0, 0) lies when one goes round it in steps of one pixel and rounds down; no
// point comes twice.
std::vector<Point> circle(int radius);

// The points at distance `radius` or less.
std::vector<Point> disc(double radius);

}  // namespace lra::pathfinder
