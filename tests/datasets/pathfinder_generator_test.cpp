// Generated Pathfinder pictures: the same for any thread count, made as they should be, and like the original's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "datasets/pathfinder/contours.h"
#include "datasets/pathfinder/generator.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra::pathfinder {
namespace {

std::vector<GeneratedPicture> generated(const GeneratorOptions& options) {
  std::vector<GeneratedPicture> pictures;
  generate(options, [&](const GeneratedPicture& picture) { pictures.push_back(picture); });
  return pictures;
}

bool same(const GeneratedPicture& a, const GeneratedPicture& b) {
  return a.index == b.index && a.label == b.label && a.pixels == b.pixels && a.truth == b.truth;
}

TEST(PathfinderGenerator, DependsOnTheSeedAndNotOnTheThreads) {
  GeneratorOptions options{.count = 300, .seed = 7, .threads = 1, .truth = true};
  const std::vector<GeneratedPicture> one = generated(options);
  ASSERT_EQ(one.size(), 300u);
  for (const int threads : {2, 5}) {
    options.threads = threads;
    const std::vector<GeneratedPicture> many = generated(options);
    ASSERT_EQ(many.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i) ASSERT_TRUE(same(one[i], many[i])) << i;
  }
  // Neither does a picture depend on how many there are or on the truth.
  options.count = 70;
  options.truth = false;
  for (const GeneratedPicture& picture : generated(options)) {
    EXPECT_EQ(picture.pixels, one[static_cast<size_t>(picture.index)].pixels);
    EXPECT_TRUE(picture.truth.empty());
  }
  options.seed = 8;
  EXPECT_NE(generated(options)[0].pixels, one[0].pixels);
}

// The pictures of a seed are part of what a record's hash stands for: they may not drift from version to version.
// Nothing in them hangs on the last bit of a sine (datasets/pathfinder/geometry.cpp).
TEST(PathfinderGenerator, GivesThePicturesItAlwaysGave) {
  const auto hash = [](int size, const std::string& level, int64_t count) {
    std::string bytes;
    for (const GeneratedPicture& picture : generated({.count = count, .size = size, .level = level, .threads = 2})) {
      bytes += static_cast<char>(picture.label);
      bytes.append(reinterpret_cast<const char*>(picture.pixels.data()), picture.pixels.size());
    }
    return hex64(hash_bytes(bytes));
  };
  EXPECT_EQ(hash(32, "14", 100), "90841720ada3c70c");
  EXPECT_EQ(hash(128, "9", 5), "56f8846b062b3e6e");
}

TEST(PathfinderGenerator, ReportsProgressAndStopsOnAnException) {
  int64_t last = 0;
  const auto ignore = [](const GeneratedPicture&) {};
  generate({.count = 200, .threads = 2}, ignore, [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, 200);
    last = done;
  });
  EXPECT_EQ(last, 200);
  generate({.count = 0}, [](const GeneratedPicture&) { FAIL(); });
  EXPECT_THROW(generate({.count = 5000, .threads = 2}, ignore, [](int64_t, int64_t) { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_THROW(generate({.count = 5000, .threads = 2}, [](const GeneratedPicture&) { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_THROW(generate({.count = 1, .size = 33}, ignore), UsageError);
}

TEST(PathfinderGenerator, MakesAllSizesAndLevels) {
  for (const int size : {32, 64, 128, 256}) {
    for (const char* level : {"baseline", "9", "14"}) {
      const int64_t count = size == 32 ? 40 : size == 256 ? 2 : 4;
      for (const GeneratedPicture& picture :
           generated({.count = count, .size = size, .level = level, .threads = 2, .truth = true})) {
        ASSERT_EQ(picture.pixels.size(), static_cast<size_t>(size * size));
        ASSERT_EQ(*std::max_element(picture.pixels.begin(), picture.pixels.end()), 255);
        std::array<int, 5> pixels{};
        for (const uint8_t what : picture.truth) ++pixels.at(what);
        for (const int n : pixels) EXPECT_TRUE(n > 0 || size == 32) << size << " " << level;
        EXPECT_GT(pixels[kFirstTarget], 0);
        EXPECT_GT(pixels[kSecondTarget], 0);
        EXPECT_GT(pixels[kMarker], 0);
        EXPECT_GT(pixels[kGround], size * size / 2);
      }
    }
  }
}

// Contours keep their bounds and lengths, and strokes do not lie on one another.
TEST(PathfinderContours, StayInsideAndApart) {
  for (const auto& [size, level, pictures] :
       {std::tuple{32, "14", 60}, {32, "baseline", 20}, {64, "9", 8}, {128, "14", 4}, {256, "14", 2}}) {
    const Settings settings = settings_of(size, level);
    const Brushes brushes(settings);
    for (int i = 0; i < pictures; ++i) {
      Random random(3, RandomStream::kData, static_cast<uint64_t>(i));
      const Contours contours = ContourGrower(settings, brushes, random).grow();
      EXPECT_LE(std::ssize(contours.distractors), settings.distractors);
      std::vector<const Contour*> all{&contours.targets[0], &contours.targets[1]};
      for (const Contour& contour : contours.distractors) all.push_back(&contour);
      for (size_t k = 0; k < all.size(); ++k) {
        const Contour& contour = *all[k];
        ASSERT_EQ(std::ssize(contour.strokes), k < 2 ? settings.contour_length : settings.distractor_length);
        EXPECT_EQ(contour.origin, contour.strokes.front().at);
        EXPECT_EQ(contour.end, contour.strokes.back().at);
        for (const PlacedStroke& stroke : contour.strokes) {
          EXPECT_TRUE(stroke.at.row >= 0 && stroke.at.row < size && stroke.at.column >= 0 && stroke.at.column < size);
        }
        for (size_t s = 2; s < contour.strokes.size(); ++s) {
          // The next stroke turns by less than a right angle at continuity 1, by less than 50 degrees at 1.8.
          const double turn = angle_between(contour.strokes[s].direction, contour.strokes[s - 1].direction);
          EXPECT_LT(settings.continuity * turn, 1.5708);
        }
      }
      const Point apart = contours.targets[1].origin - contours.targets[0].origin;
      EXPECT_NEAR(std::hypot(apart.row, apart.column), settings.seed_distance, 1.5);

      // Footprints of strokes that are not neighbours in a contour add up to less than 1.8 everywhere. The first two
      // strokes of the targets are placed without that test.
      const auto check_pair = [&](const PlacedStroke& a, const PlacedStroke& b) {
        const Stamp& one = brushes.along(a.direction).footprint;
        const Stamp& two = brushes.along(b.direction).footprint;
        for (int row = -one.radius; row <= one.radius; ++row) {
          for (int column = -one.radius; column <= one.radius; ++column) {
            const Point pixel = a.at + Point{row, column}, other = pixel - b.at;
            if (std::abs(other.row) > two.radius || std::abs(other.column) > two.radius) continue;
            if (pixel.row < 0 || pixel.row >= settings.size || pixel.column < 0 || pixel.column >= settings.size)
              continue;
            const auto level = [](const Stamp& stamp, Point at) {
              const int place = (at.row + stamp.radius) * stamp.side() + at.column + stamp.radius;
              return stamp.levels[static_cast<size_t>(place)];
            };
            ASSERT_LT(level(one, {row, column}) + level(two, other), 459) << "picture " << i;
          }
        }
      };
      for (size_t k = 0; k < all.size(); ++k) {
        for (size_t s = 0; s < all[k]->strokes.size(); ++s) {
          for (size_t t = 0; t + 1 < s; ++t) check_pair(all[k]->strokes[s], all[k]->strokes[t]);
          // Of the two targets, which grow in step, the last strokes are not yet in the way of each other.
          for (size_t j = 2; k < 2 && j < all.size(); ++j) {
            for (const PlacedStroke& other : all[j]->strokes) check_pair(all[k]->strokes[s], other);
          }
        }
      }
    }
  }
}

// In the truth, markers lie on both ends of one target, or on an end of each.
TEST(PathfinderGenerator, MarksTheEndsThatTheLabelSays) {
  const Settings settings = settings_of(32, "14");
  const Brushes brushes(settings);
  int ones = 0;
  const std::vector<GeneratedPicture> pictures = generated({.count = 400, .seed = 5, .threads = 2, .truth = true});
  for (const GeneratedPicture& picture : pictures) {
    ones += picture.label;
    Random random(5, RandomStream::kData, static_cast<uint64_t>(picture.index));
    EXPECT_EQ(static_cast<int32_t>(random.below(2)), picture.label);
    const uint32_t marked = random.below(2);
    const Contours contours = ContourGrower(settings, brushes, random).grow();
    const Contour& one = contours.targets[marked];
    const Contour& other = contours.targets[picture.label == 1 ? marked : 1 - marked];
    const std::vector<uint8_t> markers = brushes.markers(std::array{one.origin, other.end});
    for (size_t i = 0; i < markers.size(); ++i) {
      EXPECT_EQ(picture.truth[i] == kMarker, markers[i] >= 32) << picture.index;
      if (markers[i] >= 32) {
        EXPECT_GT(picture.pixels[i], 0);
      }
    }
  }
  EXPECT_NEAR(ones, 200, 50);  // five standard deviations
}

// 1,500 pictures of the original: real tokens 349 (standard deviation 40), pixels above level 12 15.7 %, mean level
// 20.2; the brightest pixel is a marker's in 34 % of them, where no distractor found room or all are slanted.
TEST(PathfinderGenerator, IsDistributedAsTheOriginal) {
  double tokens = 0.0, ink = 0.0, level = 0.0, plain = 0.0;
  constexpr int kPictures = 1000;
  for (const GeneratedPicture& picture : generated({.count = kPictures, .threads = 2, .truth = true})) {
    int bright = 0;
    for (size_t i = 0; i < picture.pixels.size(); ++i) {
      tokens += picture.pixels[i] > 0;
      ink += picture.pixels[i] > 12;
      level += picture.pixels[i];
      bright += picture.truth[i] == kDistractor;
    }
    plain += bright == 0;
  }
  EXPECT_NEAR(tokens / kPictures, 349.3, 6.0);
  EXPECT_NEAR(ink / kPictures / 1024, 0.1574, 0.002);
  EXPECT_NEAR(level / kPictures / 1024, 20.16, 0.3);
  EXPECT_NEAR(plain / kPictures, 0.3, 0.06);
}

}  // namespace
}  // namespace lra::pathfinder
