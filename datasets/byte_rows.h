// Examples in memory, one byte a token, all rows one after another: how every task with at most 256 kinds of tokens is
// held (the 96,000 ListOps training rows take 100 MB, the 25,000 reviews of Text 33 MB).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/example.h"

namespace lra {

// What was left out of a split, counted by reason.
class SkippedRows {
 public:
  // `place` ("basic_train.tsv:17") is kept for the first of each reason.
  void add(const std::string& reason, const std::string& place, int64_t count = 1);
  const std::vector<Skipped>& all() const { return skipped_; }

 private:
  std::vector<Skipped> skipped_;
};

// InputError naming the first bad row where a training split has no good one.
void require_training_row(const DataSplit& rows, const std::filesystem::path& path);

class ByteRows final : public DataSplit {
 public:
  // Rows are cut at max_length tokens; 0 = never. The id of a byte is byte + shift.
  explicit ByteRows(int64_t max_length = 0, int32_t shift = 0) : max_length_(max_length), shift_(shift) {}

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  DataExample get(int64_t index) const override;
  const std::vector<Skipped>& skipped() const override { return skipped_.all(); }
  int64_t truncated() const override { return truncated_; }

  std::span<const uint8_t> bytes(int64_t index) const;
  int32_t label(int64_t index) const { return labels_[static_cast<size_t>(index)]; }

  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  void append(std::span<const uint8_t> bytes, int32_t label);
  void append(std::string_view bytes, int32_t label) {
    append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, label);
  }
  void skip(const std::string& reason, const std::string& place, int64_t count = 1) {
    skipped_.add(reason, place, count);
  }

 private:
  int64_t max_length_;
  int32_t shift_;
  std::vector<uint8_t> bytes_;
  std::vector<uint64_t> ends_;  // of each row in bytes_
  std::vector<uint8_t> labels_;
  SkippedRows skipped_;
  int64_t truncated_ = 0;
};

}  // namespace lra
