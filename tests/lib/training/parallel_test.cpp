// Parallel loops: everything runs once, exceptions pass through, and nothing returns with half of its work undone.
#include "lib/training/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lib/training/threads.h"

namespace lra {
namespace {

using Loop = void (*)(int64_t, const std::function<void(int64_t)>&);
constexpr Loop kLoops[] = {parallel_for, parallel_in_order};

TEST(Parallel, EveryIndexRunsOnce) {
  Threads threads(4);
  for (const Loop loop : kLoops) {
    for (const int64_t n : {0, 1, 7, 1000}) {
      std::vector<int> seen(static_cast<size_t>(n), 0);
      threads.run([&] { loop(n, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; }); });
      EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(n), 1));
    }
  }
}

TEST(Parallel, InOrderStartsInOrder) {
  std::vector<int64_t> started;
  Threads(1).run([&] { parallel_in_order(50, [&](int64_t i) { started.push_back(i); }); });
  ASSERT_EQ(started.size(), 50u);
  for (size_t k = 0; k < started.size(); ++k) EXPECT_EQ(started[k], static_cast<int64_t>(k));
}

TEST(Parallel, ExceptionsPassThrough) {
  Threads threads(3);
  const auto fail = [] { throw std::runtime_error("leaf"); };
  for (const Loop loop : kLoops) {
    EXPECT_THROW(threads.run([&] {
      loop(100, [&](int64_t i) {
        if (i == 50) fail();
      });
    }),
                 std::runtime_error);
  }
  EXPECT_THROW(threads.run([&] { isolated(fail); }), std::runtime_error);
  int done = 0;
  threads.run([&] { isolated([&] { ++done; }); });
  EXPECT_EQ(done, 1);
}

TEST(Parallel, NothingIsStartedAfterAFailure) {
  Threads threads(1);
  int ran = 0;
  EXPECT_THROW(threads.run([&] {
    parallel_in_order(100, [&](int64_t i) {
      ++ran;
      if (i == 3) throw std::runtime_error("row");
    });
  }),
               std::runtime_error);
  EXPECT_EQ(ran, 4);
}

// One example that cannot be read ends a step: loops elsewhere may be left out whole, but none that runs may return
// normally without all of its work.
TEST(Parallel, FailureElsewhereLeavesNoLoopHalfDone) {
  Threads threads(4);
  std::atomic<int> half_done{0};
  const std::function<void(int, bool)> grow = [&](int depth, bool fails) {
    if (depth == 0) {
      // Long enough that others have taken up the rest of the tree when the failure comes.
      std::this_thread::sleep_for(std::chrono::microseconds(fails ? 200 : 50));
      if (fails) throw std::runtime_error("leaf");
      return;
    }
    std::atomic<int> done = 0;
    parallel_for(2, [&](int64_t i) {
      grow(depth - 1, fails && i == 1);
      ++done;
    });
    if (done != 2) ++half_done;
  };
  for (int i = 0; i < 50; ++i) {
    EXPECT_THROW(threads.run([&] { grow(6, true); }), std::runtime_error);
  }
  EXPECT_EQ(half_done, 0);
}

}  // namespace
}  // namespace lra
