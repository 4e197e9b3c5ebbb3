// How an op runs parts of its work side by side without knowing the threads, which belong to lib/training.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/tensor/arena.h"

namespace lra {

class Fork {
 public:
  virtual ~Fork() = default;
  // body(i, scratch) for every i in [0, n), in no order, each with scratch of its own.
  virtual void run(int64_t n, const std::function<void(int64_t, Arena&)>& body) const = 0;
};

// The same, or without a fork one after another with the scratch at hand.
template <class Body>
void run_parts(const Fork* fork, int64_t n, Arena& arena, const Body& body) {
  if (fork != nullptr) {
    fork->run(n, body);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const Arena::Scope scope(arena);
    body(i, arena);
  }
}

}  // namespace lra
