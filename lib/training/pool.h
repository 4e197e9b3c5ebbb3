// Objects that tasks borrow and give back: scratch lives with a task, not with a thread, so a thread that picks up
// another task while it waits can never find its scratch in use. Internal to this room.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace lra {

template <class T>
class Pool {
 public:
  explicit Pool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  // Gives the object back on destruction.
  class Loan {
   public:
    Loan(Pool* pool, std::unique_ptr<T> object) : pool_(pool), object_(std::move(object)) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&& other) noexcept {
      give_back();
      pool_ = other.pool_;
      object_ = std::move(other.object_);
      return *this;
    }
    ~Loan() { give_back(); }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

   private:
    void give_back() {
      if (object_) pool_->put(std::move(object_));
    }
    Pool* pool_;
    std::unique_ptr<T> object_;
  };

  Loan borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<T> object = std::move(free_.back());
        free_.pop_back();
        return {this, std::move(object)};
      }
    }
    return {this, make_()};
  }

 private:
  void put(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(object));
  }

  std::function<std::unique_ptr<T>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace lra
