#include "datasets/byte_rows.h"

#include <algorithm>

#include "lib/util/check.h"

namespace lra {

void SkippedRows::add(const std::string& reason, const std::string& place, int64_t count) {
  const auto known =
      std::find_if(skipped_.begin(), skipped_.end(), [&](const Skipped& entry) { return entry.reason == reason; });
  if (known != skipped_.end()) {
    known->count += count;
  } else {
    skipped_.push_back({reason, count, place});
  }
}

void require_training_row(const DataSplit& rows, const std::filesystem::path& path) {
  if (rows.size() > 0) return;
  std::string why = "it has none at all";
  if (!rows.skipped().empty()) {
    why = fmt::format("the first bad one is {}, {}", rows.skipped()[0].first, rows.skipped()[0].reason);
  }
  throw InputError("{}: not one good training row; {}", path.string(), why);
}

std::span<const uint8_t> ByteRows::bytes(int64_t index) const {
  check(index >= 0 && index < size(), "row {} of {}", index, size());
  const auto row = static_cast<size_t>(index);
  const uint64_t begin = row == 0 ? 0 : ends_[row - 1];
  return {bytes_.data() + begin, ends_[row] - begin};
}

DataExample ByteRows::get(int64_t index) const {
  const std::span<const uint8_t> row = bytes(index);
  DataExample example;
  example.ids.resize(row.size());
  std::transform(row.begin(), row.end(), example.ids.begin(), [&](uint8_t byte) { return byte + shift_; });
  example.label = label(index);
  return example;
}

void ByteRows::append(std::span<const uint8_t> bytes, int32_t label) {
  if (max_length_ > 0 && bytes.size() > static_cast<size_t>(max_length_)) {
    bytes = bytes.first(static_cast<size_t>(max_length_));
    ++truncated_;
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  ends_.push_back(bytes_.size());
  labels_.push_back(static_cast<uint8_t>(label));
}

}  // namespace lra
