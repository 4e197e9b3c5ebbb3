// The tree gives the same bits for any order of its leaves, and the feeder the same examples as direct reading.
#include "lib/training/gradient_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "lib/training/parallel.h"
#include "lib/training/prefetch.h"
#include "lib/training/threads.h"
#include "tests/support/examples.h"
#include "tests/support/models.h"

namespace lra {
namespace {

class TreeTest : public testing::Test {
 protected:
  TreeTest() : model(small_config()), pool([this] { return std::make_unique<GradientBuffer>(model.layout()); }) {}

  // Leaf i holds random numbers of its own.
  GradientTree::Gradients leaf(int64_t i) {
    GradientTree::Gradients gradients = pool.borrow();
    gradients->start(model.config().padded_length);
    Random random(7, RandomStream::kData, static_cast<uint64_t>(i));
    for (float& value : gradients->values()) value = static_cast<float>(random.uniform() - 0.5);
    return gradients;
  }

  std::vector<float> values(GradientBuffer& gradients) {
    const std::span<float> all = gradients.finish();
    return {all.begin(), all.end()};
  }

  // The sum by the definition.
  std::vector<float> halved(int64_t lo, int64_t hi) {
    if (hi - lo == 1) return values(*leaf(lo));
    const int64_t middle = (lo + hi) / 2;
    std::vector<float> left = halved(lo, middle);
    const std::vector<float> right = halved(middle, hi);
    for (size_t k = 0; k < left.size(); ++k) left[k] += right[k];
    return left;
  }

  Classifier model;
  Pool<GradientBuffer> pool;
};

TEST_F(TreeTest, AnyOrderAndThreadsGiveTheSumByHalves) {
  for (const int64_t leaves : {1, 2, 3, 7, 16}) {
    const std::vector<float> expected = halved(0, leaves);
    std::vector<int64_t> order(static_cast<size_t>(leaves));
    std::iota(order.begin(), order.end(), 0);
    GradientTree tree(leaves);
    for (const int threads : {1, 2, 5}) {
      for (int turn = 0; turn < 5; ++turn) {
        std::vector<float> got;
        Threads(threads).run([&] { got = values(*tree.sum(order, [&](int64_t i) { return leaf(i); })); });
        ASSERT_EQ(got, expected) << leaves << " leaves, " << threads << " threads, turn " << turn;
        std::rotate(order.begin(), order.begin() + leaves / 2, order.end());
        std::reverse(order.begin(), order.end() - leaves / 3);
      }
    }
  }
}

TEST_F(TreeTest, IsUsableAfterALeafFailed) {
  const std::vector<int64_t> order = {3, 0, 2, 1};
  GradientTree tree(4);
  Threads(2).run([&] {
    EXPECT_THROW(tree.sum(order,
                          [&](int64_t i) {
                            if (i == 2) throw std::runtime_error("row");
                            return leaf(i);
                          }),
                 std::runtime_error);
    EXPECT_EQ(values(*tree.sum(order, [&](int64_t i) { return leaf(i); })), halved(0, 4));
  });
}

TEST(LongestFirst, SortsWithinGroupsAndKeepsTheOrderOfEquals) {
  const std::vector<double> costs = {1, 5, 5, 2, 9, 9, 3, 1};
  EXPECT_EQ(longest_first(costs, 8), (std::vector<int64_t>{4, 5, 1, 2, 6, 3, 0, 7}));
  EXPECT_EQ(longest_first(costs, 4), (std::vector<int64_t>{1, 2, 3, 0, 4, 5, 6, 7}));
  EXPECT_EQ(longest_first(costs, 0), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Prefetch, GivesTheRowsAskedFor) {
  const VectorSource source(random_examples(small_config(), 10, 1));
  Prefetch prefetch(source);
  const auto expect = [&](const std::vector<int64_t>& rows) {
    const std::vector<Example> examples = prefetch.take(rows);
    ASSERT_EQ(examples.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(examples[i].first.ids, source.get(rows[i]).first.ids);
      EXPECT_EQ(examples[i].label, source.get(rows[i]).label);
    }
  };
  expect({1, 2, 3});
  prefetch.begin({4, 5});
  expect({4, 5});
  prefetch.begin({6, 7});
  expect({8, 9});  // a run that was set back asks for others
  expect({6, 7});
  prefetch.begin({11});  // does not exist
  EXPECT_THROW(prefetch.take({11}), std::out_of_range);
  prefetch.begin({11});
  expect({0});
  prefetch.begin({11});  // and is never taken
}

}  // namespace
}  // namespace lra
