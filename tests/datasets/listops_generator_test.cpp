// Generated ListOps data: the same for any thread count, within its bounds, and distributed as the original's.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

#include "datasets/byte_rows.h"
#include "datasets/listops/generator.h"
#include "datasets/listops/tokens.h"
#include "datasets/statistics.h"

namespace lra::listops {
namespace {

struct Generated {
  ByteRows train, validation, test;
};

Generated generated(int64_t train, int64_t validation, int64_t test, uint64_t seed, int threads) {
  Generated result;
  generate({train, validation, test, seed, threads}, [&](Split split, std::span<const uint8_t> ids, int32_t label) {
    (split == Split::kTrain        ? result.train
     : split == Split::kValidation ? result.validation
                                   : result.test)
        .append(ids, label);
  });
  return result;
}

TEST(ListopsGenerator, DependsOnTheSeedAndNotOnTheThreads) {
  const Generated one = generated(600, 20, 30, 7, 1);
  EXPECT_EQ(one.train.size(), 600);
  EXPECT_EQ(one.validation.size(), 20);
  EXPECT_EQ(one.test.size(), 30);
  for (const int threads : {2, 5}) {
    const Generated many = generated(600, 20, 30, 7, threads);
    EXPECT_EQ(split_hash(many.train), split_hash(one.train));
    EXPECT_EQ(split_hash(many.validation), split_hash(one.validation));
    EXPECT_EQ(split_hash(many.test), split_hash(one.test));
  }
  const Generated other = generated(600, 20, 30, 8, 2);
  EXPECT_NE(split_hash(other.train), split_hash(one.train));
  EXPECT_EQ(also_in_train(one.train, other.train), 0);
}

// The data of a seed is part of what a record's hash stands for: it may not drift from version to version.
TEST(ListopsGenerator, GivesTheDataItAlwaysGave) {
  const Generated first = generated(50, 5, 5, 0, 2);
  EXPECT_EQ(split_hash(first.train), 0x005b80a09b16bfbdu);
  EXPECT_EQ(split_hash(first.test), 0xd3315ac08fd9ef13u);
}

TEST(ListopsGenerator, ReportsProgressUpToTheEndAndStopsOnAnException) {
  int64_t last = 0;
  const auto ignore = [](Split, std::span<const uint8_t>, int32_t) {};
  generate({3000, 1, 1, 0, 2}, ignore, [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, 3002);
    last = done;
  });
  EXPECT_EQ(last, 3002);
  EXPECT_THROW(generate({3000, 1, 1, 0, 2}, ignore, [](int64_t, int64_t) { throw std::runtime_error("stop"); }),
               std::runtime_error);
}

// Walks a tree and counts what it is made of.
struct Shape {
  std::array<int64_t, 16> tokens{};                    // by id
  std::array<int64_t, 11> arguments{};                 // operators by number of arguments
  std::array<int64_t, 12> operators_at{}, nodes_at{};  // by depth, the root at 1

  void add(std::span<const uint8_t> ids) {
    std::vector<int> open;
    for (const uint8_t id : ids) {
      ++tokens[id];
      if (id == kClose) {
        ASSERT_LE(open.back(), kMaxArguments);
        ++arguments[static_cast<size_t>(open.back())];
        open.pop_back();
        continue;
      }
      if (!open.empty()) ++open.back();
      ASSERT_LE(open.size() + 1, static_cast<size_t>(kMaxDepth));
      ++nodes_at[open.size() + 1];
      if (is_operator(id)) {
        ++operators_at[open.size() + 1];
        open.push_back(0);
      }
    }
  }
};

double share(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

TEST(ListopsGenerator, KeepsBoundsAndDistributionOfTheOriginal) {
  const Generated set = generated(4000, 1, 1, 1, 2);
  Shape shape;
  std::set<std::string> seen;
  Evaluator evaluator;
  double length_sum = 0.0;
  for (int64_t i = 0; i < set.train.size(); ++i) {
    const std::span<const uint8_t> ids = set.train.bytes(i);
    ASSERT_GT(ids.size(), 500u);
    ASSERT_LT(ids.size(), 2000u);
    ASSERT_EQ(evaluator.evaluate(ids), set.train.label(i));
    ASSERT_TRUE(seen.emplace(ids.begin(), ids.end()).second);
    length_sum += static_cast<double>(ids.size());
    shape.add(ids);
  }
  // 800 rows of the original generator: mean 1043.7, median 967, 95 % up to 1821. Their mean's
  // standard error is 15 tokens, the one here 6.
  EXPECT_NEAR(length_sum / 4000.0, 1043.7, 25.0);
  const SplitStatistics statistics = split_statistics(set.train);
  EXPECT_NEAR(static_cast<double>(statistics.length.median), 950.0, 40.0);
  EXPECT_NEAR(static_cast<double>(statistics.length.p95), 1800.0, 50.0);

  int64_t operators = 0, digits = 0;
  for (uint8_t id = kMax; id <= kSum; ++id) operators += shape.tokens[id];
  for (uint8_t d = 0; d < 10; ++d) digits += shape.tokens[kFirstDigit + d];
  for (uint8_t id = kMax; id <= kSum; ++id) EXPECT_NEAR(share(shape.tokens[id], operators), 0.25, 0.003);
  for (uint8_t d = 0; d < 10; ++d) EXPECT_NEAR(share(shape.tokens[kFirstDigit + d], digits), 0.1, 0.001);
  EXPECT_EQ(shape.arguments[0] + shape.arguments[1], 0);
  for (size_t k = 2; k <= 10; ++k) EXPECT_NEAR(share(shape.arguments[k], operators), 1.0 / 9.0, 0.004) << k;
  // Length selects bushy tops; from the middle on nodes are operators in a quarter of cases, at depth 10 never.
  EXPECT_EQ(shape.operators_at[1], 4000);
  EXPECT_NEAR(share(shape.operators_at[2], shape.nodes_at[2]), 0.33, 0.02);
  for (size_t depth = 6; depth <= 9; ++depth) {
    EXPECT_NEAR(share(shape.operators_at[depth], shape.nodes_at[depth]), 0.252, 0.005) << depth;
  }
  EXPECT_GT(shape.nodes_at[10], 0);
  EXPECT_EQ(shape.operators_at[10], 0);
  // Labels of the original: 0 and 9 are twice as common as the others (MIN and MAX of many arguments).
  for (const size_t label : {0, 9}) EXPECT_NEAR(share(statistics.label_counts[label], 4000), 0.17, 0.025) << label;
  for (size_t label = 1; label < 9; ++label) {
    EXPECT_NEAR(share(statistics.label_counts[label], 4000), 0.082, 0.02) << label;
  }
}

}  // namespace
}  // namespace lra::listops
