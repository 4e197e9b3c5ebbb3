// Forks and joins: everything runs once, exceptions pass through, and nothing returns with half of its work undone.
#include "lib/training/fork_join.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lib/training/threads.h"

namespace lra {
namespace {

int64_t tree_sum(const std::vector<int64_t>& values, int64_t lo, int64_t hi) {
  if (hi - lo == 1) return values[static_cast<size_t>(lo)];
  const int64_t middle = (lo + hi) / 2;
  int64_t left = 0, right = 0;
  fork_join([&] { left = tree_sum(values, lo, middle); }, [&] { right = tree_sum(values, middle, hi); });
  return left + right;
}

TEST(ForkJoin, TreeOfForksSeesEveryLeafOnce) {
  std::vector<int64_t> values(1000);
  std::iota(values.begin(), values.end(), 1);
  for (const int count : {1, 2, 5}) {
    Threads threads(count);
    threads.run([&] { EXPECT_EQ(tree_sum(values, 0, 1000), 500500); });
  }
}

TEST(ForkJoin, ParallelForRunsEveryIndexOnce) {
  Threads threads(4);
  for (const int64_t n : {0, 1, 7, 1000}) {
    std::vector<int> seen(static_cast<size_t>(n), 0);
    threads.run([&] { parallel_for(n, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; }); });
    EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(n), 1));
  }
}

TEST(ForkJoin, ExceptionsPassThrough) {
  Threads threads(3);
  const auto fail = [] { throw std::runtime_error("leaf"); };
  EXPECT_THROW(threads.run([&] { fork_join(fail, [] {}); }), std::runtime_error);
  EXPECT_THROW(threads.run([&] { fork_join([] {}, fail); }), std::runtime_error);
  EXPECT_THROW(threads.run([&] {
    parallel_for(100, [&](int64_t i) {
      if (i == 50) fail();
    });
  }),
               std::runtime_error);
  EXPECT_THROW(threads.run([&] { isolated(fail); }), std::runtime_error);
  int done = 0;
  threads.run([&] { isolated([&] { ++done; }); });
  EXPECT_EQ(done, 1);
}

// One example that cannot be read ends a step: the other half of the tree may be cut short, but no fork in it may
// return normally without both of its results.
TEST(ForkJoin, FailureElsewhereLeavesNoForkHalfDone) {
  Threads threads(4);
  std::atomic<int> half_done{0};
  const std::function<void(int, bool)> grow = [&](int depth, bool fails) {
    if (depth == 0) {
      // Long enough that others have taken up the rest of the tree when the failure comes.
      std::this_thread::sleep_for(std::chrono::microseconds(fails ? 200 : 50));
      if (fails) throw std::runtime_error("leaf");
      return;
    }
    std::optional<int> left, right;
    fork_join(
        [&] {
          grow(depth - 1, false);
          left = 1;
        },
        [&] {
          grow(depth - 1, fails);
          right = 1;
        });
    if (!left || !right) ++half_done;
  };
  for (int i = 0; i < 50; ++i) {
    EXPECT_THROW(threads.run([&] { grow(6, true); }), std::runtime_error);
  }
  EXPECT_EQ(half_done, 0);
}

}  // namespace
}  // namespace lra
