#include "datasets/listops/rows.h"

#include <algorithm>

#include "lib/util/check.h"

namespace lra::listops {

std::span<const uint8_t> Rows::ids(int64_t index) const {
  check(index >= 0 && index < size(), "row {} of {}", index, size());
  const auto row = static_cast<size_t>(index);
  const uint64_t begin = row == 0 ? 0 : ends_[row - 1];
  return {ids_.data() + begin, ends_[row] - begin};
}

DataExample Rows::get(int64_t index) const {
  const std::span<const uint8_t> row = ids(index);
  DataExample example;
  example.ids.assign(row.begin(), row.end());
  example.label = label(index);
  return example;
}

void Rows::append(std::span<const uint8_t> ids, int32_t label) {
  if (max_length_ > 0 && ids.size() > static_cast<size_t>(max_length_)) {
    ids = ids.first(static_cast<size_t>(max_length_));
    ++truncated_;
  }
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ends_.push_back(ids_.size());
  labels_.push_back(static_cast<uint8_t>(label));
}

void Rows::skip(const std::string& reason, const std::string& place) {
  const auto known =
      std::find_if(skipped_.begin(), skipped_.end(), [&](const Skipped& entry) { return entry.reason == reason; });
  if (known != skipped_.end()) {
    ++known->count;
  } else {
    skipped_.push_back({reason, 1, place});
  }
}

}  // namespace lra::listops
