// Hash, lengths, classes and shared rows of a split.
#include "datasets/statistics.h"

#include <gtest/gtest.h>

namespace lra {
namespace {

class FakeSplit final : public DataSplit {
 public:
  explicit FakeSplit(std::vector<DataExample> examples, bool pair = false)
      : examples_(std::move(examples)), pair_(pair) {}
  bool pair() const override { return pair_; }
  int64_t size() const override { return static_cast<int64_t>(examples_.size()); }
  DataExample get(int64_t index) const override { return examples_.at(static_cast<size_t>(index)); }
  const std::vector<Skipped>& skipped() const override { return skipped_; }
  int64_t truncated() const override { return 0; }

 private:
  std::vector<DataExample> examples_;
  std::vector<Skipped> skipped_;
  bool pair_;
};

// The expected values come from Python: xxhash.xxh64(struct.pack("<...i", label, len(ids), *ids, ...)).
TEST(SplitHash, IsTheXxh64OfLabelsLengthsAndIds) {
  const FakeSplit single({{{11, 3, 8, 15}, {}, 7}, {{}, {}, 1}, {{4}, {}, 3}});
  EXPECT_EQ(split_hash(single), 0xcd710b9d9a2dac73u);
  EXPECT_EQ(split_hash(single, 2), 0x7f3d3a05a84cca74u);
  EXPECT_EQ(split_hash(single, 100), split_hash(single));
  EXPECT_EQ(split_hash(FakeSplit({})), 0xef46db3751d8e999u);  // of no bytes at all
  const FakeSplit pairs({{{1, 2}, {511}, 1}, {{}, {}, 0}}, true);
  EXPECT_EQ(split_hash(pairs), 0x3f034bc8257dcef9u);
}

TEST(SplitStatistics, RanksLengthsAndCountsLabels) {
  std::vector<DataExample> examples;
  for (int i = 1; i <= 100; ++i)
    examples.push_back({std::vector<int32_t>(static_cast<size_t>(101 - i), 7), {}, i % 4 == 0});
  const SplitStatistics all = split_statistics(FakeSplit(examples));
  EXPECT_EQ(all.examples, 100);
  EXPECT_EQ(all.length.min, 1);
  EXPECT_EQ(all.length.median, 50);
  EXPECT_DOUBLE_EQ(all.length.mean, 50.5);
  EXPECT_EQ(all.length.p95, 95);
  EXPECT_EQ(all.length.max, 100);
  EXPECT_EQ(all.label_counts, (std::vector<int64_t>{75, 25}));
  EXPECT_DOUBLE_EQ(all.majority_share, 0.75);
  const SplitStatistics few = split_statistics(FakeSplit(examples), 3);
  EXPECT_EQ(few.examples, 3);
  EXPECT_EQ(few.length.min, 98);
  EXPECT_EQ(few.length.median, 99);
  EXPECT_EQ(few.length.p95, 100);
  const SplitStatistics padded = split_statistics(FakeSplit({{{0, 3, 0, 0, 9}, {0, 1}, 1}}, true));
  EXPECT_EQ(padded.length.max, 3);  // padding is no token
  const SplitStatistics none = split_statistics(FakeSplit({}));
  EXPECT_EQ(none.length.max, 0);
  EXPECT_EQ(none.majority_share, 0.0);
}

TEST(AlsoInTrain, CountsEveryRowOfEqualIdsAndLabel) {
  const FakeSplit train({{{1, 2, 3}, {}, 5}, {{4}, {}, 0}, {{1, 2, 3}, {}, 5}});
  const FakeSplit test({{{1, 2, 3}, {}, 5},  // shared
                        {{1, 2, 3}, {}, 5},  // shared again
                        {{1, 2, 3}, {}, 4},  // another label
                        {{1, 2}, {}, 5},     // other ids
                        {{4}, {}, 0}});      // shared
  EXPECT_EQ(also_in_train(train, test), 3);
  EXPECT_EQ(also_in_train(FakeSplit({}), test), 0);
  EXPECT_EQ(also_in_train(train, FakeSplit({})), 0);
  // Where one document ends and the other begins counts.
  const FakeSplit pairs({{{1, 2}, {3}, 0}}, true), other({{{1}, {2, 3}, 0}}, true);
  EXPECT_EQ(also_in_train(pairs, other), 0);
  EXPECT_EQ(also_in_train(pairs, pairs), 1);
}

}  // namespace
}  // namespace lra
