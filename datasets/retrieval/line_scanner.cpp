#include "datasets/retrieval/line_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lib/util/check.h"

namespace lra::retrieval {
namespace {

constexpr const char* kRight = "a row is label<TAB>id1<TAB>id2<TAB>text1<TAB>text2";

// -1: none.
int32_t label_of(std::string_view field) {
  if (field == "0.0" || field == "0") return 0;
  if (field == "1.0" || field == "1") return 1;
  return -1;
}

}  // namespace

const char* fault_reason(Fault fault) {
  switch (fault) {
    case Fault::kNone: return "";
    case Fault::kBlank: return "blank line";
    case Fault::kIdsOnly: return "ids without texts";
    case Fault::kFieldCount: return "wrong field count";
    case Fault::kLabel: return "bad label";
    case Fault::kTooLong: return "line too long";
  }
  return "";
}

void LineScanner::start(uint64_t offset) {
  offset_ = offset;
  length_ = 0;
  tabs_ = 0;
  label_.clear();
  last_ = 0;
}

void LineScanner::take(std::string_view part) {
  if (part.empty()) return;
  size_t begin = 0;  // of the field
  for (;;) {
    const auto* tab = static_cast<const char*>(std::memchr(part.data() + begin, '\t', part.size() - begin));
    const size_t end = tab != nullptr ? static_cast<size_t>(tab - part.data()) : part.size();
    if (tabs_ == 0 && label_.size() <= kShown) label_ += part.substr(begin, std::min(end - begin, kShown + 1));
    if (tab == nullptr) break;
    if (tabs_ < kTabs) tab_[tabs_] = length_ + end;
    ++tabs_;
    begin = end + 1;
    if (begin == part.size()) break;
  }
  length_ += part.size();
  last_ = part.back();
}

Fault LineScanner::finish(RowPlace& row) {
  if (length_ > kLongestLine) return Fault::kTooLong;
  const uint64_t length = length_ > 0 && last_ == '\r' ? length_ - 1 : length_;
  if (length == 0) return Fault::kBlank;
  if (tabs_ == 2) return Fault::kIdsOnly;
  if (tabs_ != kTabs) return Fault::kFieldCount;
  row.label = label_of(label_);
  if (row.label < 0) return Fault::kLabel;
  row.text1 = offset_ + tab_[2] + 1;
  row.length1 = static_cast<uint32_t>(tab_[3] - tab_[2] - 1);
  row.text2 = offset_ + tab_[3] + 1;
  row.length2 = static_cast<uint32_t>(length - tab_[3] - 1);
  return Fault::kNone;
}

std::string LineScanner::detail(Fault fault) const {
  switch (fault) {
    case Fault::kNone: break;
    case Fault::kBlank: return fmt::format("the line is blank; {}", kRight);
    case Fault::kIdsOnly:
      return fmt::format("three fields: this file holds ids only, the texts are needed; {}", kRight);
    case Fault::kFieldCount:
      return fmt::format("{} field{}{}; {}", tabs_ + 1, tabs_ == 0 ? "" : "s",
                         tabs_ > kTabs ? " (a text may hold no tab)" : "", kRight);
    case Fault::kLabel: return fmt::format("the label '{}' is not 0.0 or 1.0", shown(label_, kShown));
    case Fault::kTooLong: return fmt::format("the line exceeds {} MiB", kLongestLine >> 20);
  }
  return {};
}

}  // namespace lra::retrieval
