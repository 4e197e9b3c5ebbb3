// Reads the examples of the next batch while the present one is worked on, so that files and decoding never stall the
// training step. Internal to this room.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "lib/model/example.h"

namespace lra {

class Prefetch {
 public:
  // `data` must outlive it.
  explicit Prefetch(const ExampleSource& data) : data_(data) {}
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The examples of these rows: those that begin() started on, else read now. What reading threw is thrown here.
  std::vector<Example> take(const std::vector<int64_t>& rows);
  // Starts to read these rows on a thread of its own.
  void begin(std::vector<int64_t> rows);

 private:
  const ExampleSource& data_;
  std::vector<int64_t> rows_;
  std::future<std::vector<Example>> examples_;
};

}  // namespace lra
