// Sums of gradients that leave out unused position rows. Rows used by one side only are copied, not added to zero: the
// result is the same function of the batch for every order of execution.
#include "lib/training/gradient_buffer.h"

#include <algorithm>

#include "lib/util/check.h"

namespace lra {
namespace {

void add_range(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

GradientBuffer::GradientBuffer(const ParameterLayout& layout) : values_(static_cast<size_t>(layout.size())) {
  const std::string table = "encoder.position_embedding.weight";
  if (layout.contains(table)) {
    const ParameterInfo& info = layout.at(table);
    table_begin_ = info.offset;
    table_end_ = info.offset + info.size;
    row_ = info.shape[1];
  }
  used_end_ = table_begin_;
}

void GradientBuffer::start(int64_t places) {
  used_end_ = std::min(table_begin_ + places * row_, table_end_);
  std::fill(values_.begin(), values_.begin() + used_end_, 0.0f);
  std::fill(values_.begin() + table_end_, values_.end(), 0.0f);
}

void GradientBuffer::add(const GradientBuffer& other) {
  check(values_.size() == other.values_.size(), "sum of unlike gradients");
  const float* from = other.values_.data();
  float* to = values_.data();
  add_range(to, from, std::min(used_end_, other.used_end_));
  if (other.used_end_ > used_end_) {
    std::copy(from + used_end_, from + other.used_end_, to + used_end_);
    used_end_ = other.used_end_;
  }
  add_range(to + table_end_, from + table_end_, static_cast<int64_t>(values_.size()) - table_end_);
}

std::span<float> GradientBuffer::finish() {
  std::fill(values_.begin() + used_end_, values_.begin() + table_end_, 0.0f);
  used_end_ = table_end_;
  return values_;
}

int64_t used_places(const ModelConfig& config, const Example& example) {
  int64_t places = 0;
  for (const Sequence* sequence : {&example.first, &example.second}) {
    if (!sequence->places.empty()) places = std::max<int64_t>(places, sequence->places.back() + 1);
  }
  return places + (config.pooling == "cls-vector" ? 1 : 0);
}

}  // namespace lra
