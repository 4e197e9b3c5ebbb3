// Inputs of the classifier: the real tokens of a sequence with their places in the padded sequence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lra {

struct Sequence {
  std::vector<int32_t> ids;     // (N) none is 0 (padding)
  std::vector<int32_t> places;  // (N) increasing
};

struct Example {
  Sequence first;
  Sequence second;  // pair tasks only
  int32_t label = 0;
};

// Where training and evaluation take examples from. Reading is thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  virtual int64_t size() const = 0;
  virtual Example get(int64_t index) const = 0;
};

// Token ids with 0 = padding, as data sets give them: padding is dropped, places are kept.
Sequence make_sequence(const std::vector<int32_t>& padded_ids);

}  // namespace lra
