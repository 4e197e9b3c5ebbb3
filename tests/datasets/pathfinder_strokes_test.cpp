// The parts Pathfinder pictures are made of: rounding of moves, the reduction, and strokes as the original draws them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "datasets/pathfinder/geometry.h"
#include "datasets/pathfinder/lanczos.h"
#include "datasets/pathfinder/strokes.h"
#include "lib/util/check.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::pathfinder {
namespace {

TEST(PathfinderGeometry, MovesAreRoundedUp) {
  const Point from{15, 15};
  EXPECT_EQ(moved(from, direction_of_degrees(0), 2), (Point{15, 17}));
  EXPECT_EQ(moved(from, direction_of_degrees(90), 2), (Point{17, 15}));
  EXPECT_EQ(moved(from, direction_of_degrees(180), 2), (Point{15, 13}));
  EXPECT_EQ(moved(from, direction_of_degrees(270), 2), (Point{13, 15}));
  EXPECT_EQ(moved(from, direction_of_degrees(30), 2), (Point{16, 17}));   // (1, 1.73)
  EXPECT_EQ(moved(from, direction_of_degrees(225), 2), (Point{14, 14}));  // (-1.41, -1.41)
  EXPECT_EQ(moved(from, direction_of({2, 1}), 4), (Point{19, 17}));       // (3.58, 1.79)
  // The rounding error of sin and cos at straight angles shows near the border.
  EXPECT_EQ(moved({10, 3}, direction_of({1, 0}), 4), (Point{14, 4}));
  EXPECT_EQ(moved({10, 4}, direction_of({1, 0}), 4), (Point{14, 4}));
  EXPECT_EQ(moved({7, 10}, direction_of({0, -1}), 4), (Point{8, 6}));
  EXPECT_EQ(moved({8, 10}, direction_of({0, -1}), 4), (Point{8, 6}));
}

TEST(PathfinderGeometry, CirclesGoOnceRoundAndRoundDown) {
  const std::vector<Point> points = circle(3);
  EXPECT_EQ(points.size(), 18u);
  EXPECT_EQ(points[0], (Point{0, 3}));
  EXPECT_EQ(points[1], (Point{0, 2}));
  std::set<std::pair<int, int>> seen;
  for (const Point point : points) {
    EXPECT_TRUE(seen.emplace(point.row, point.column).second);
    const int square = point.row * point.row + point.column * point.column;
    EXPECT_GE(square, 4);
    EXPECT_LE(square, 13);
  }
  EXPECT_EQ(disc(1).size(), 5u);
  EXPECT_EQ(disc(1.5).size(), 9u);
  EXPECT_EQ(disc(2).size(), 13u);
}

TEST(PathfinderLanczos, KeepsEvenPicturesAndSharpensEdges) {
  const LanczosReduction reduce(64, 32);
  EXPECT_EQ(reduce(std::vector<uint8_t>(64 * 64, 200)), std::vector<uint8_t>(32 * 32, 200));
  // Left half white: beside the edge the filter goes below black and above white, which is cut off.
  std::vector<uint8_t> half(64 * 64, 0);
  for (size_t row = 0; row < 64; ++row) std::fill_n(half.begin() + static_cast<long>(row * 64), 32, uint8_t{255});
  const std::vector<uint8_t> reduced = reduce(half);
  const std::vector<uint8_t> edge(reduced.begin() + 32 * 16 + 12, reduced.begin() + 32 * 16 + 21);
  EXPECT_EQ(edge, (std::vector<uint8_t>{255, 254, 255, 241, 14, 0, 1, 0, 0}));
}

// Levels of strokes as they stand in the original's pictures, brought to full contrast.
TEST(PathfinderStrokes, LookAsTheOriginalDrawsThem) {
  const Brushes brushes(settings_of(32, "14"));
  const auto window = [&](const Stroke& stroke, int row, int rows, int column, int columns) {
    std::vector<int> levels;
    for (int r = row; r < row + rows; ++r) {
      for (int c = column; c < column + columns; ++c) {
        levels.push_back(stroke.ink.levels[static_cast<size_t>(r + 4) * 9 + static_cast<size_t>(c + 4)]);
      }
    }
    return levels;
  };
  EXPECT_EQ(window(brushes.along({0.0, 1.0}), -1, 3, 0, 3),
            (std::vector<int>{0, 0, 0, /**/ 102, 135, 116, /**/ 0, 0, 0}));
  EXPECT_EQ(window(brushes.along({1.0, 0.0}), 0, 3, -1, 3),
            (std::vector<int>{0, 102, 0, /**/ 0, 147, 0, /**/ 0, 116, 0}));
  EXPECT_EQ(window(brushes.along(direction_of({-2, -3})), -1, 2, -2, 3),
            (std::vector<int>{52, 111, 24, /**/ 0, 65, 93}));
}

TEST(PathfinderStrokes, KeepAGapAroundThem) {
  for (const int size : {32, 64, 128, 256}) {
    const Settings settings = settings_of(size, "9");
    const Brushes brushes(settings);
    for (int degrees = 0; degrees < 360; degrees += 7) {
      const Stroke& stroke = brushes.along(direction_of_degrees(degrees));
      const auto weight = [](const Stamp& stamp) {
        return std::accumulate(stamp.levels.begin(), stamp.levels.end(), int64_t{0}) / 255.0;
      };
      const double length = settings.stroke_length, width = settings.stroke_width;
      EXPECT_NEAR(weight(stroke.ink), length * width, 0.45 * length * width + 0.8) << size << " " << degrees;
      EXPECT_GT(weight(stroke.footprint), weight(stroke.ink) + 1.2 * settings.margin * length)
          << size << " " << degrees;
    }
  }
}

TEST(PathfinderStrokes, MarkersLookAsTheOriginalDrawsThem) {
  const std::vector<uint8_t> picture = Brushes(settings_of(32, "14")).markers(std::vector<Point>{{10, 20}});
  const int expected[4][4] = {{0, 28, 65, 3}, {28, 228, 254, 133}, {66, 255, 255, 190}, {0, 132, 178, 55}};
  for (int row = 0; row < 4; ++row) {
    for (int column = 0; column < 4; ++column) {
      EXPECT_NEAR(picture[static_cast<size_t>((8 + row) * 32 + 18 + column)], expected[row][column], 1)
          << row << " " << column;
    }
  }
}

TEST(PathfinderSettings, NameSizesAndLevels) {
  EXPECT_EQ(settings_of(32, "baseline").contour_length, 6);
  EXPECT_EQ(settings_of(32, "baseline").distractors, 10);
  EXPECT_EQ(settings_of(128, "9").distractor_length, 3);
  EXPECT_EQ(settings_of(256, "14").distractors, 7);
  EXPECT_EQ(level_folder("baseline"), "curv_baseline");
  EXPECT_EQ(level_folder("14"), "curv_contour_length_14");
  EXPECT_EQ(message_of<UsageError>([] { settings_of(48, "14"); }),
            "Pathfinder has no pictures of size 48; 32, 64, 128 or 256");
  EXPECT_EQ(message_of<UsageError>([] { settings_of(32, "15"); }), "Pathfinder has no level '15'; baseline, 9 or 14");
  EXPECT_THROW(level_folder(""), UsageError);
}

}  // namespace
}  // namespace lra::pathfinder
