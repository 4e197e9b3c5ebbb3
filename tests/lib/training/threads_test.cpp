// Threads: OpenMP is one thread inside, errors pass, and the caller's own settings come back.
#include "lib/training/threads.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <stdexcept>

#include "lib/training/parallel.h"
#include "lib/util/check.h"

namespace lra {
namespace {

TEST(Threads, EveryThreadSeesOpenMpAsOne) {
  omp_set_num_threads(4);
  Threads threads(3);
  EXPECT_EQ(threads.count(), 3);
  std::atomic<int> wrong = 0;
  threads.run([&] {
    EXPECT_EQ(tbb::this_task_arena::max_concurrency(), 3);
    parallel_for(1000, [&](int64_t) { wrong += omp_get_max_threads() != 1 ? 1 : 0; });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(omp_get_max_threads(), 4);
}

TEST(Threads, ErrorsPassThrough) {
  Threads threads(2);
  EXPECT_THROW(threads.run([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(threads.run([] {
    parallel_for(10, [](int64_t i) {
      if (i == 7) throw std::out_of_range("in a task");
    });
  }),
               std::out_of_range);
}

TEST(Threads, NeedsAtLeastOne) { EXPECT_THROW(Threads(0), UsageError); }

}  // namespace
}  // namespace lra
