// Names, shapes and offsets of the tensors of a model. Tensors lie one after another in the order they were added; the
// order is part of no file (checkpoints go by name) but decides which weights one matrix product can take together.
#include "lib/model/parameters.h"

#include <utility>

#include "lib/util/check.h"

namespace lra {

int64_t ParameterLayout::add(std::string name, std::vector<int64_t> shape, bool trained) {
  check(!contains(name), "tensor {} is laid out twice", name);
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  const int64_t offset = size_;
  index_.emplace(name, all_.size());
  all_.push_back({std::move(name), std::move(shape), offset, size, trained, {}});
  size_ += size;
  return offset;
}

int64_t ParameterLayout::share(const std::string& owner, std::string name) {
  check(contains(owner) && !contains(name), "tensor {} cannot share {}", name, owner);
  ParameterInfo& info = all_[index_.at(owner)];
  index_.emplace(name, index_.at(owner));
  info.also.push_back(std::move(name));
  return info.offset;
}

const ParameterInfo& ParameterLayout::at(const std::string& name) const {
  const auto found = index_.find(name);
  check(found != index_.end(), "no tensor {}", name);
  return all_[found->second];
}

std::vector<ParameterRange> ParameterLayout::trained_ranges() const {
  std::vector<ParameterRange> ranges;
  for (const ParameterInfo& info : all_) {
    if (!info.trained) continue;
    if (!ranges.empty() && ranges.back().begin + ranges.back().size == info.offset) {
      ranges.back().size += info.size;
    } else {
      ranges.push_back({info.offset, info.size});
    }
  }
  return ranges;
}

}  // namespace lra
