// Attention matrices as pictures: means of blocks, limits of colours, and that nothing is drawn over something else.
#include "lib/diagnostics/maps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "lib/diagnostics/font.h"
#include "lib/diagnostics/map_picture.h"
#include "tests/support/examples.h"
#include "tests/support/models.h"

namespace lra {
namespace {

AttentionMap map_of(int64_t tokens, std::vector<float> values) {
  AttentionMap map;
  map.tokens = map.side = tokens;
  map.values = std::move(values);
  return map;
}

std::vector<AttentionMap> maps_of(const std::string& attention, int64_t most, const Example& example,
                                  bool pair = false) {
  ModelConfig config = small_config();
  config.attention = attention;
  config.pair = pair;
  Classifier model(config);
  model.initialise(2);
  Arena arena;
  ExampleResult result;
  std::vector<AttentionMap> maps = attention_maps(model, example, most, arena, result);
  EXPECT_EQ(result.loss, model.evaluate(example, arena).loss);
  return maps;
}

TEST(AttentionMaps, BlocksAreMeans) {
  Example example;
  example.first = make_sequence(std::vector<int32_t>(37, 3));
  for (size_t i = 0; i < 37; ++i) example.first.ids[i] = 1 + static_cast<int32_t>(i % 11);
  for (const char* attention : {"softmax", "polynomial", "softmax:causal=1"}) {
    const std::vector<AttentionMap> whole = maps_of(attention, 64, example), small = maps_of(attention, 10, example);
    ASSERT_EQ(whole.size(), 4u);
    ASSERT_EQ(small.size(), 4u);
    for (size_t m = 0; m < 4; ++m) {
      EXPECT_EQ(whole[m].block, 1);
      EXPECT_EQ(whole[m].side, 37);
      EXPECT_EQ(small[m].block, 4);
      EXPECT_EQ(small[m].side, 10);
      EXPECT_EQ(small[m].layer, static_cast<int>(m / 2));
      EXPECT_EQ(small[m].head, static_cast<int>(m % 2));
      const AttentionMap again = reduced(whole[m], 4);
      EXPECT_EQ(again.block, small[m].block);
      for (int64_t query = 0; query < 10; ++query) {
        for (int64_t key = 0; key < 10; ++key) {
          ASSERT_EQ(std::isnan(small[m].at(query, key)), std::isnan(again.at(query, key)));
          if (!std::isnan(again.at(query, key))) {
            ASSERT_NEAR(small[m].at(query, key), again.at(query, key), 1e-6 * std::abs(again.at(query, key)));
          }
        }
      }
      const bool causal = std::string(attention).ends_with("causal=1");
      EXPECT_EQ(std::isnan(whole[m].at(3, 4)), causal);
      if (std::string(attention) == "polynomial") continue;
      for (int64_t query = 0; query < 37; ++query) {
        double sum = 0.0;
        for (int64_t key = 0; key < 37; ++key) {
          if (!std::isnan(whole[m].at(query, key))) sum += whole[m].at(query, key);
        }
        EXPECT_NEAR(sum, 1.0, 1e-5);
      }
    }
  }
}

TEST(AttentionMaps, OfBothDocumentsOfAPairAndOfNoEmptyOne) {
  Example example;
  example.first = make_sequence({1, 2, 3}), example.second = make_sequence({4, 5});
  const std::vector<AttentionMap> maps = maps_of("softmax", 8, example, true);
  ASSERT_EQ(maps.size(), 8u);
  EXPECT_EQ(maps[3].sequence, 0);
  EXPECT_EQ(maps[4].sequence, 1);
  EXPECT_EQ(maps[4].tokens, 2);
  example.first = {};
  EXPECT_EQ(maps_of("softmax", 8, example, true).size(), 4u);
}

TEST(ColourScale, FollowsSignsAndPercentiles) {
  std::vector<float> values(100 * 100);
  std::iota(values.begin(), values.end(), 0.0f);
  values.back() = 1e9f;  // an outlier decides nothing
  const ColourScale plain = ColourScale::of(map_of(100, values));
  EXPECT_FALSE(plain.diverging);
  EXPECT_NEAR(plain.low, 50.0, 1.0);
  EXPECT_NEAR(plain.high, 9949.0, 1.0);
  EXPECT_EQ(plain.colour(0.0), kWhite);
  EXPECT_EQ(plain.colour(2e9), plain.colour(plain.high));
  for (float& value : values) value -= 6000.0f;
  const ColourScale signs = ColourScale::of(map_of(100, values));
  EXPECT_TRUE(signs.diverging);
  EXPECT_EQ(signs.low, -signs.high);
  EXPECT_EQ(signs.colour(0.0), kWhite);
  EXPECT_GT(signs.colour(signs.high)[0], signs.colour(signs.high)[2]);  // red
  EXPECT_LT(signs.colour(signs.low)[0], signs.colour(signs.low)[2]);    // blue
  // Nearly all zero: the largest value.
  std::vector<float> sparse(100 * 100);
  sparse[17] = 0.25f;
  EXPECT_EQ(ColourScale::of(map_of(100, sparse)).high, 0.25);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ColourScale none = ColourScale::of(map_of(1, {nan}));
  EXPECT_EQ(none.high, 0.0);
  EXPECT_NE(none.colour(nan), kWhite);
}

TEST(MapPicture, OfAnySize) {
  for (const int64_t side : {1, 2, 5, 31, 100, 300, 512}) {
    std::vector<float> values(static_cast<size_t>(side * side));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.0f;
    AttentionMap map = map_of(side, values);
    map.block = 3, map.tokens = 3 * side - 1;
    const Canvas canvas = draw_map(map, {"a title", "more of it"});
    EXPECT_GT(canvas.width(), std::max<int64_t>(256, side));
    EXPECT_LT(canvas.width(), 900);
    EXPECT_GT(canvas.height(), std::max<int64_t>(256, side));
    EXPECT_LT(canvas.height(), 900);
    EXPECT_EQ(canvas.rgb().size(), static_cast<size_t>(canvas.width() * canvas.height() * 3));
  }
}

TEST(MapPicture, SheetHoldsEveryRow) {
  const AttentionMap map = map_of(3, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<SheetRow> rows(3, SheetRow{{"test 1", "label 2"}, {map, map}});
  const Canvas three = draw_sheet(rows, "sheet");
  rows.push_back({{"an empty example"}, {}});
  const Canvas four = draw_sheet(rows, "sheet");
  EXPECT_GT(four.height(), three.height());
  rows.assign(1, SheetRow{{"many"}, std::vector<AttentionMap>(100, map)});
  EXPECT_LE(draw_sheet(rows, "sheet").width(), 16384);  // what a PNG may have
  rows.assign(kMostSheetRows, SheetRow{{"many"}, {map}});
  EXPECT_LE(draw_sheet(rows, "sheet").height(), 16384);
}

TEST(Font, EveryCharacterIsAnother) {
  std::vector<std::string> seen;
  for (char c = ' '; c <= '~'; ++c) {
    std::string dots;
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x) dots += glyph_pixel(c, x, y) ? '#' : '.';
    }
    EXPECT_EQ(std::find(seen.begin(), seen.end(), dots), seen.end()) << c;
    seen.push_back(dots);
  }
  EXPECT_EQ(glyph_pixel('\xc3', 1, 0), glyph_pixel('?', 1, 0));
}

}  // namespace
}  // namespace lra
