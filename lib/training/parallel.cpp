// The thread sanitizer cannot see the order that TBB makes (a fork before its tasks, its tasks before the join), since
// the system's TBB is not built with it. This file is therefore compiled without it and states that order itself; the
// code of the tasks is checked as any other.
#include "lib/training/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>

#if defined(LRA_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace lra {
namespace {

// One fork with its join; the object's address stands for it. Destructors say the order on exceptions too.
class Order {
 public:
  Order() { release(); }   // all that the forking thread did comes before the tasks
  ~Order() { acquire(); }  // all that the tasks did comes before what follows the join
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  template <class Body, class... Args>
  void run(const Body& body, Args... args) {
    acquire();
    const Finish finish{*this};
    body(args...);
  }

 private:
  struct Finish {
    Order& order;
    ~Finish() { order.release(); }
  };
#if defined(LRA_THREAD_SANITIZER)
  void acquire() { __tsan_acquire(this); }
  void release() { __tsan_release(this); }
#else
  void acquire() {}
  void release() {}
#endif
};

}  // namespace

// The contexts are isolated: an exception elsewhere must not make this call return with half of its work undone, as a
// cancelled parent context would.

void isolated(const std::function<void()>& work) {
  tbb::this_task_arena::isolate([&] { work(); });
}

void parallel_for(int64_t n, const std::function<void(int64_t)>& body) {
  Order order;
  tbb::task_group_context context(tbb::task_group_context::isolated);
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, n, 1),
      [&](const tbb::blocked_range<int64_t>& range) {
        for (int64_t i = range.begin(); i < range.end(); ++i) order.run(body, i);
      },
      tbb::simple_partitioner(), context);
}

bool threads_to_spare(int64_t i, int64_t n) { return i > n - tbb::this_task_arena::max_concurrency(); }

void parallel_in_order(int64_t n, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  parallel_for(std::min<int64_t>(n, tbb::this_task_arena::max_concurrency()), [&](int64_t) {
    for (int64_t i = next++; i < n && !failed; i = next++) {
      try {
        body(i);
      } catch (...) {
        failed = true;
        throw;
      }
    }
  });
}

}  // namespace lra
