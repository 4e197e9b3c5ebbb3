// Parts of an op as tasks of the threads at hand, for the moments when there are fewer sequences than threads. To be
// used inside Threads::run.
#pragma once

#include "lib/tensor/fork.h"
#include "lib/training/parallel.h"
#include "lib/training/pool.h"

namespace lra {

class TaskFork final : public Fork {
 public:
  TaskFork() : arenas_([] { return std::make_unique<Arena>(); }) {}
  void run(int64_t n, const std::function<void(int64_t, Arena&)>& body) const override {
    parallel_for(n, [&](int64_t i) {
      const Pool<Arena>::Loan arena = arenas_.borrow();
      arena->reset();
      isolated([&] { body(i, *arena); });
    });
  }

 private:
  mutable Pool<Arena> arenas_;
};

}  // namespace lra
