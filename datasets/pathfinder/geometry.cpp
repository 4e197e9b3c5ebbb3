#include "datasets/pathfinder/geometry.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lra::pathfinder {
namespace {

constexpr double kSinePi = 1.2246467991473532e-16;       // sin and cos of the doubles nearest to pi
constexpr double kCosineHalfPi = 6.123233995736766e-17;  // and pi/2

// Rounds to a grid of 2^-40, so that the last bits of the platform's sin and cos decide nothing.
double settled(double value) { return std::nearbyint(value * 0x1p40) * 0x1p-40; }

Direction settled_direction(double row, double column) {
  Direction direction{settled(row), settled(column)};
  if (direction.column == 0.0) direction.column = kCosineHalfPi;
  if (direction.row == 0.0 && direction.column < 0.0) direction.row = kSinePi;
  return direction;
}

}  // namespace

Direction direction_of_degrees(int degrees) {
  const double angle = degrees * (std::numbers::pi / 180.0);
  return settled_direction(std::sin(angle), std::cos(angle));
}

Direction direction_of(Point offset) {
  const double length = std::sqrt(static_cast<double>(offset.row * offset.row + offset.column * offset.column));
  return settled_direction(offset.row / length, offset.column / length);
}

double angle_between(Direction a, Direction b) {
  return std::acos(std::clamp(a.row * b.row + a.column * b.column, -1.0, 1.0));
}

Point moved(Point from, Direction direction, double distance) {
  return {static_cast<int>(std::ceil(from.row + distance * direction.row)),
          static_cast<int>(std::ceil(from.column + distance * direction.column))};
}

std::vector<Point> circle(int radius) {
  std::vector<Point> points;
  for (int step = 0; step < 2.0 * std::numbers::pi * radius; ++step) {
    const double angle = static_cast<double>(step) / radius;
    const Point point{static_cast<int>(std::floor(radius * std::sin(angle))),
                      static_cast<int>(std::floor(radius * std::cos(angle)))};
    if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
  }
  return points;
}

std::vector<Point> disc(double radius) {
  std::vector<Point> points;
  const int reach = static_cast<int>(radius);
  for (int row = -reach; row <= reach; ++row) {
    for (int column = -reach; column <= reach; ++column) {
      if (row * row + column * column <= radius * radius) points.push_back({row, column});
    }
  }
  return points;
}

}  // namespace lra::pathfinder
