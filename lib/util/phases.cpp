#include "lib/util/phases.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace lra {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of one thread; written by it alone, and outlives it.
struct Book {
  std::array<std::atomic<int64_t>, kPhaseCount> nanoseconds{};
  Phase current = Phase::kOther;
  int64_t since = 0;   // 0: the thread is in no phase
  int64_t period = 0;  // of start_phases
};

std::mutex mutex;
std::vector<std::shared_ptr<Book>> books;
std::atomic<int64_t> period = 0;

Book& own_book() {
  thread_local const std::shared_ptr<Book> book = [] {
    auto fresh = std::make_shared<Book>();
    const std::lock_guard lock(mutex);
    books.push_back(fresh);
    return fresh;
  }();
  return *book;
}

}  // namespace

namespace phases {

bool on = false;

Phase enter(Phase phase) {
  Book& book = own_book();
  const int64_t time = now();
  if (book.period != period.load(std::memory_order_relaxed)) {
    book.period = period.load(std::memory_order_relaxed);
    book.current = Phase::kOther;
    book.since = 0;
  }
  // What lies outside all phases is not booked: a thread may be idle there.
  if (book.since != 0 && book.current != Phase::kOther) {
    auto& sum = book.nanoseconds[static_cast<size_t>(book.current)];
    sum.store(sum.load(std::memory_order_relaxed) + time - book.since, std::memory_order_relaxed);
  }
  const Phase before = book.current;
  book.current = phase;
  book.since = time;
  return before;
}

}  // namespace phases

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kOther: return "other";
    case Phase::kData: return "waiting for data";
    case Phase::kEmbedding: return "embedding, pooling";
    case Phase::kNorm: return "layer norms";
    case Phase::kLinear: return "linear layers";
    case Phase::kElementwise: return "GELU, dropout, residuals";
    case Phase::kPacking: return "attention: packing";
    case Phase::kScores: return "attention: products";
    case Phase::kWeights: return "attention: score activation";
    case Phase::kMasks: return "attention: dropout masks";
    case Phase::kHead: return "head, loss";
    case Phase::kSum: return "sum of gradients";
    case Phase::kUpdate: return "optimizer";
    case Phase::kCount: break;
  }
  return "?";
}

void start_phases() {
  const std::lock_guard lock(mutex);
  for (const auto& book : books) {
    for (auto& sum : book->nanoseconds) sum.store(0, std::memory_order_relaxed);
  }
  period.fetch_add(1, std::memory_order_relaxed);
  phases::on = true;
}

PhaseSeconds stop_phases() {
  phases::on = false;
  PhaseSeconds seconds{};
  const std::lock_guard lock(mutex);
  for (const auto& book : books) {
    for (int i = 0; i < kPhaseCount; ++i) {
      seconds[static_cast<size_t>(i)] +=
          static_cast<double>(book->nanoseconds[static_cast<size_t>(i)].load(std::memory_order_relaxed)) * 1e-9;
    }
  }
  return seconds;
}

}  // namespace lra
