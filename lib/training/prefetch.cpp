#include "lib/training/prefetch.h"

#include <utility>

namespace lra {
namespace {

std::vector<Example> read(const ExampleSource& data, const std::vector<int64_t>& rows) {
  std::vector<Example> examples;
  examples.reserve(rows.size());
  for (const int64_t row : rows) examples.push_back(data.get(row));
  return examples;
}

}  // namespace

Prefetch::~Prefetch() {
  if (examples_.valid()) examples_.wait();
}

std::vector<Example> Prefetch::take(const std::vector<int64_t>& rows) {
  if (examples_.valid()) {
    std::future<std::vector<Example>> ready = std::move(examples_);
    if (rows == rows_) return ready.get();
    ready.wait();  // of another place in the stream: its outcome is of no interest
  }
  return read(data_, rows);
}

void Prefetch::begin(std::vector<int64_t> rows) {
  rows_ = std::move(rows);
  examples_ = std::async(std::launch::async, [this] { return read(data_, rows_); });
}

}  // namespace lra
