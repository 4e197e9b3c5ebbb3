// Gradients of one example, or of several summed. The rows of the position table that no token stands on are never
// touched: for long tables they are most of the parameters and neither zeroed nor added. Internal to this room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/model/classifier.h"

namespace lra {

class GradientBuffer {
 public:
  explicit GradientBuffer(const ParameterLayout& layout);

  // All zero, for an example whose tokens stand on the first `places` rows of the position table.
  void start(int64_t places);
  // this += other; the order is that of the call, elementwise.
  void add(const GradientBuffer& other);
  // Zeroes the rest of the position table and gives the whole.
  std::span<float> finish();

  // Values outside the rows in use are undefined.
  std::span<float> values() { return values_; }

  // For messages between ranks: end of the rows in use. A buffer with the values and the end of another is the same
  // sum.
  int64_t used_end() const { return used_end_; }
  void set_used_end(int64_t end) { used_end_ = end; }

 private:
  std::vector<float> values_;
  int64_t table_begin_ = 0, table_end_ = 0, row_ = 1;  // position table (empty where positions are not learned)
  int64_t used_end_ = 0;                               // end of the rows in use
};

// Rows of the position table up to the last one the example uses.
int64_t used_places(const ModelConfig& config, const Example& example);

}  // namespace lra
