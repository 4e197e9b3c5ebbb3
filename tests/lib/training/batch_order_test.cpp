// The endless training stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lib/training/trainer.h"

namespace lra {
namespace {

std::vector<int64_t> stream(BatchOrder order, int64_t batches) {
  std::vector<int64_t> all;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const std::vector<int64_t> rows = order.rows(batch);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

TEST(BatchOrder, SequentialRepeatsFileOrder) {
  EXPECT_EQ(stream(BatchOrder(5, 3, 0, false), 4), (std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1}));
}

TEST(BatchOrder, EachPassIsAFreshPermutation) {
  const int64_t examples = 23, epochs = 7;
  const std::vector<int64_t> all = stream(BatchOrder(examples, 7, 11, true), examples * epochs / 7);
  ASSERT_EQ(static_cast<int64_t>(all.size()), examples * epochs);
  std::vector<int64_t> rows(examples), previous;
  std::iota(rows.begin(), rows.end(), 0);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<int64_t> pass(all.begin() + epoch * examples, all.begin() + (epoch + 1) * examples);
    EXPECT_TRUE(std::ranges::is_permutation(pass, rows));
    EXPECT_NE(pass, previous);
    previous = pass;
  }
}

TEST(BatchOrder, NoShortBatch) {
  BatchOrder larger_than_the_data(3, 8, 0, true);
  for (int64_t batch = 0; batch < 5; ++batch) EXPECT_EQ(larger_than_the_data.rows(batch).size(), 8u);
}

TEST(BatchOrder, ABatchIsAFunctionOfItsNumber) {
  BatchOrder in_order(23, 7, 11, true), at_once(23, 7, 11, true);
  std::vector<int64_t> sixth;
  for (int64_t batch = 0; batch <= 6; ++batch) sixth = in_order.rows(batch);
  EXPECT_EQ(at_once.rows(6), sixth);
  EXPECT_EQ(in_order.rows(0), BatchOrder(23, 7, 11, true).rows(0));  // and backwards
  EXPECT_NE(BatchOrder(23, 7, 12, true).rows(0), in_order.rows(0));
}

}  // namespace
}  // namespace lra
