// ListOps examples in memory: one byte a token, all rows one after another (the 96,000 training rows take 100 MB).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/example.h"

namespace lra::listops {

class Rows final : public DataSplit {
 public:
  // Rows are cut at max_length tokens; 0 = never.
  explicit Rows(int64_t max_length = 0) : max_length_(max_length) {}

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  DataExample get(int64_t index) const override;
  const std::vector<Skipped>& skipped() const override { return skipped_; }
  int64_t truncated() const override { return truncated_; }

  std::span<const uint8_t> ids(int64_t index) const;
  int32_t label(int64_t index) const { return labels_[static_cast<size_t>(index)]; }

  void reserve_tokens(size_t tokens) { ids_.reserve(tokens); }
  void append(std::span<const uint8_t> ids, int32_t label);
  // `place` ("basic_train.tsv:17") is kept for the first row of each reason.
  void skip(const std::string& reason, const std::string& place);

 private:
  int64_t max_length_;
  std::vector<uint8_t> ids_;
  std::vector<uint64_t> ends_;  // of each row in ids_
  std::vector<uint8_t> labels_;
  std::vector<Skipped> skipped_;
  int64_t truncated_ = 0;
};

}  // namespace lra::listops
