#include "datasets/pathfinder/contours.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace lra::pathfinder {
namespace {

// As the original has them, but the tries of a distractor, where six agree with its pictures (two thirds of which hold
// a distractor at 32 pixels and length 14).
constexpr int kSecondSeedTries = 3;  // places for the second target's first stroke
constexpr int kHeadDraws = 3;        // candidates tried for a stroke
constexpr int kDistractorTries = 6;  // seeds tried for a distractor
constexpr int kOverlapLimit = 459;   // 1.8 times 255: occupancy and footprint have to add up to less
constexpr double kLeastFree = 0.01;  // share of the picture that has to be free for a distractor
constexpr int kFreeLevel = 128;      // of occupancy and footprint: two places from here on that meet are taken

}  // namespace

ContourGrower::ContourGrower(const Settings& settings, const Brushes& brushes, Random& random)
    : settings_(settings),
      brushes_(brushes),
      random_(random),
      heads_(circle(settings.stroke_length + settings.margin)),
      gap_(disc(settings.margin)) {}

bool ContourGrower::inside(Point at) const {
  return at.row >= 0 && at.column >= 0 && at.row < settings_.size && at.column < settings_.size;
}

size_t ContourGrower::place(Point at) const {
  return static_cast<size_t>(at.row) * static_cast<size_t>(settings_.size) + static_cast<size_t>(at.column);
}

void ContourGrower::clear_occupancy() {
  const int size = settings_.size, padding = settings_.padding;
  occupancy_.assign(static_cast<size_t>(size) * static_cast<size_t>(size), 255);
  for (int row = padding; row < size - padding; ++row) {
    for (int column = padding; column < size - padding; ++column) occupied({row, column}) = 0;
  }
}

bool ContourGrower::fits(const Stroke& stroke, Point at) const {
  const Stamp& stamp = stroke.footprint;
  size_t i = 0;
  for (int row = -stamp.radius; row <= stamp.radius; ++row) {
    for (int column = -stamp.radius; column <= stamp.radius; ++column, ++i) {
      const Point pixel = at + Point{row, column};
      if (inside(pixel) && occupancy_[place(pixel)] + stamp.levels[i] >= kOverlapLimit) return false;
    }
  }
  return true;
}

void ContourGrower::occupy(const PlacedStroke& stroke) {
  const Stamp& stamp = brushes_.along(stroke.direction).footprint;
  size_t i = 0;
  for (int row = -stamp.radius; row <= stamp.radius; ++row) {
    for (int column = -stamp.radius; column <= stamp.radius; ++column, ++i) {
      const Point pixel = stroke.at + Point{row, column};
      if (inside(pixel)) occupied(pixel) = std::max(occupied(pixel), stamp.levels[i]);
    }
  }
}

std::optional<std::pair<FirstStroke, Direction>> ContourGrower::draw_first_stroke() {
  const int degree = static_cast<int>(random_.below(360));
  for (const FirstStroke& first : settings_.first_strokes) {
    if (degree >= first.least_degree && degree <= first.most_degree) {
      return std::pair{first, direction_of_degrees(degree)};
    }
  }
  return std::nullopt;
}

std::vector<Point> ContourGrower::free_places(const Stroke& stroke) const {
  const Stamp& stamp = stroke.footprint;
  std::vector<Point> shape;
  size_t i = 0;
  for (int row = -stamp.radius; row <= stamp.radius; ++row) {
    for (int column = -stamp.radius; column <= stamp.radius; ++column, ++i) {
      if (stamp.levels[i] >= kFreeLevel) shape.push_back({row, column});
    }
  }
  std::vector<Point> places;
  for (int row = 1; row < settings_.size - 1; ++row) {
    for (int column = 1; column < settings_.size - 1; ++column) {
      const bool free = std::none_of(shape.begin(), shape.end(), [&](Point offset) {
        const Point pixel = Point{row, column} + offset;
        return inside(pixel) && occupancy_[place(pixel)] >= kFreeLevel;
      });
      if (free) places.push_back({row, column});
    }
  }
  return places;
}

Contour ContourGrower::first_stroke(Point tail, Direction direction) const {
  const Point head = moved(tail, direction, settings_.stroke_length);
  const Point pivot = moved(head, direction.reversed(), settings_.stroke_length + settings_.margin);
  return {.origin = tail, .end = head, .pivot = pivot, .direction = direction, .strokes = {{tail, direction}}};
}

bool ContourGrower::is_inside(const Contour& contour) const { return inside(contour.end) && inside(contour.pivot); }

bool ContourGrower::grow_by_one(Contour& contour) {
  const Point pivot = moved(contour.pivot, contour.direction, settings_.stroke_length + 2 * settings_.margin);
  std::vector<std::pair<Point, double>> candidates;
  double sum = 0.0;
  for (const Point offset : heads_) {
    const Point head = pivot + offset;
    if (!inside(head)) continue;
    uint8_t taken = 0;
    for (const Point near : gap_) {
      if (inside(head + near)) taken = std::max(taken, occupied(head + near));
    }
    const double turn = settings_.continuity * angle_between(direction_of(offset), contour.direction);
    if (turn >= std::numbers::pi / 2 || taken == 255) continue;
    const double weight = std::cos(turn) * std::cos(turn) * (255 - taken);
    candidates.emplace_back(offset, weight);
    sum += weight;
  }
  if (candidates.empty()) return false;
  for (int draw = 0; draw < kHeadDraws; ++draw) {
    double rest = random_.uniform() * sum;
    size_t chosen = 0;
    while (chosen + 1 < candidates.size() && rest >= candidates[chosen].second) rest -= candidates[chosen++].second;
    const Point head = pivot + candidates[chosen].first;
    const Direction direction = direction_of(candidates[chosen].first);
    const PlacedStroke stroke{head, direction.reversed()};
    if (!fits(brushes_.along(stroke.direction), head)) continue;
    occupy(contour.strokes.back());  // only now, so that a stroke may touch the one before
    contour.strokes.push_back(stroke);
    contour.pivot = pivot;
    contour.direction = direction;
    contour.end = head;
    return true;
  }
  return false;
}

std::optional<std::array<Contour, 2>> ContourGrower::grow_targets() {
  clear_occupancy();
  const auto drawn = draw_first_stroke();
  if (!drawn) return std::nullopt;
  const auto& [first, direction] = *drawn;
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random_.below(static_cast<uint32_t>(most - least + 1)));
  };
  const int row = between(first.first_row, first.last_row), column = between(first.first_column, first.last_column);
  std::array<Contour, 2> targets;
  targets[0] = first_stroke({row, column}, direction);
  if (!is_inside(targets[0])) return std::nullopt;
  occupy(targets[0].strokes.back());
  const Direction other = direction_of_degrees(static_cast<int>(random_.below(360)));
  int tries = 0;
  do {
    if (tries++ == kSecondSeedTries) return std::nullopt;
    const Direction apart = direction_of_degrees(static_cast<int>(random_.below(360)));
    targets[1] = first_stroke(moved(targets[0].origin, apart, settings_.seed_distance), other);
  } while (!inside(targets[1].origin) || !is_inside(targets[1]));

  for (int stroke = 1; stroke < settings_.contour_length; ++stroke) {
    for (Contour& target : targets) {
      if (!grow_by_one(target)) return std::nullopt;
    }
  }
  for (const Contour& target : targets) occupy(target.strokes.back());
  return targets;
}

std::optional<Contour> ContourGrower::grow_distractor() {
  const auto drawn = draw_first_stroke();
  if (!drawn) return std::nullopt;
  const std::vector<Point> places = free_places(brushes_.along(drawn->second));
  if (static_cast<double>(places.size()) < kLeastFree * settings_.size * settings_.size) return std::nullopt;
  const Point tail = places[random_.below(static_cast<uint32_t>(places.size()))];
  Contour contour = first_stroke(tail, drawn->second);
  if (!is_inside(contour)) return std::nullopt;
  const std::vector<uint8_t> before = occupancy_;
  occupy(contour.strokes.back());
  for (int stroke = 1; stroke < settings_.distractor_length; ++stroke) {
    if (!grow_by_one(contour)) {
      occupancy_ = before;
      return std::nullopt;
    }
  }
  occupy(contour.strokes.back());
  return contour;
}

Contours ContourGrower::grow() {
  std::optional<std::array<Contour, 2>> targets;
  while (!targets) targets = grow_targets();
  Contours contours{.targets = std::move(*targets), .distractors = {}};
  for (int i = 0; i < settings_.distractors; ++i) {
    std::optional<Contour> contour;
    for (int attempt = 0; attempt < kDistractorTries && !contour; ++attempt) contour = grow_distractor();
    if (contour) contours.distractors.push_back(std::move(*contour));
  }
  return contours;
}

}  // namespace lra::pathfinder
