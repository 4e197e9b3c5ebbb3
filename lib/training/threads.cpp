// TBB arena of a fixed size whose threads see OpenMP as one thread: Debian's oneDNN runs on OpenMP, and would start a
// team of its own inside every task.
#include "lib/training/threads.h"

#include <omp.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include "lib/util/check.h"

namespace lra {
namespace {

// The number of OpenMP threads is a property of the calling thread: set on every thread that enters the arena.
class SingleOpenMpThread : public tbb::task_scheduler_observer {
 public:
  explicit SingleOpenMpThread(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) { observe(true); }
  ~SingleOpenMpThread() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override { omp_set_num_threads(1); }
};

// Gives the thread that calls run() back what it had before it entered the arena.
class OpenMpThreadsKept {
 public:
  OpenMpThreadsKept() : before_(omp_get_max_threads()) {}
  ~OpenMpThreadsKept() { omp_set_num_threads(before_); }
  OpenMpThreadsKept(const OpenMpThreadsKept&) = delete;
  OpenMpThreadsKept& operator=(const OpenMpThreadsKept&) = delete;

 private:
  int before_;
};

}  // namespace

struct Threads::State {
  explicit State(int count)
      : count(count),
        limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(count)),
        arena(count),
        observer(arena) {}

  int count;
  tbb::global_control limit;  // also lifts TBB's own limit where more threads than cores are asked for
  tbb::task_arena arena;
  SingleOpenMpThread observer;
};

Threads::Threads(int count) {
  if (count < 1) throw UsageError("threads is {}, must be at least 1", count);
  state_ = std::make_unique<State>(count);
}

Threads::~Threads() = default;

void Threads::run(const std::function<void()>& work) {
  const OpenMpThreadsKept kept;
  state_->arena.execute([&] { work(); });
}

int Threads::count() const { return state_->count; }

}  // namespace lra
