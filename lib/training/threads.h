// The one place that decides how many cores are used: a TBB arena whose workers see OpenMP (inside Debian's oneDNN) as
// a single thread, so that cores are not oversubscribed.
#pragma once

#include <functional>
#include <memory>

namespace lra {

class Threads {
 public:
  explicit Threads(int count);  // >= 1
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Runs work inside the arena; TBB algorithms in it use `count` threads. Exceptions pass through.
  void run(const std::function<void()>& work);
  int count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lra
