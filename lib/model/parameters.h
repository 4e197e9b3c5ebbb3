// All parameters of a model in one flat vector, by name. Gradients and optimizer moments are twin vectors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/tensor/view.h"

namespace lra {

struct ParameterInfo {
  std::string name;  // as in the checkpoint: encoder.blocks.0.attention.query.weight …
  std::vector<int64_t> shape;
  int64_t offset = 0;  // in the flat vector
  int64_t size = 0;
  bool trained = true;            // buffers (fixed random projections) are not
  std::vector<std::string> also;  // further checkpoint names of the same tensor (shared by layers)
};

// A piece of the flat vector.
struct ParameterRange {
  int64_t begin, size;
};

class ParameterLayout {
 public:
  // Returns the offset.
  int64_t add(std::string name, std::vector<int64_t> shape, bool trained = true);
  // A further name of the tensor `owner`, for layers that share it. Returns its offset.
  int64_t share(const std::string& owner, std::string name);
  const std::vector<ParameterInfo>& all() const { return all_; }
  const ParameterInfo& at(const std::string& name) const;
  bool contains(const std::string& name) const { return index_.contains(name); }
  // Where the trained tensors lie, neighbours as one.
  std::vector<ParameterRange> trained_ranges() const;
  int64_t size() const { return size_; }

 private:
  std::vector<ParameterInfo> all_;
  std::map<std::string, size_t> index_;
  int64_t size_ = 0;
};

}  // namespace lra
