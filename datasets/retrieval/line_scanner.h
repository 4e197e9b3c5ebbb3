// Takes a line of a Retrieval file apart, piece by piece, so that no line has to lie in memory whole: where its two
// texts begin and end, its label, or what is wrong with it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lra::retrieval {

enum class Fault : uint8_t { kNone, kBlank, kIdsOnly, kFieldCount, kLabel, kTooLong };
constexpr size_t kFaults = 6;

// The reason that bad rows are counted under: "wrong field count".
const char* fault_reason(Fault fault);

// A good row: where its texts lie in the file.
struct RowPlace {
  uint64_t text1 = 0, text2 = 0;      // offsets
  uint32_t length1 = 0, length2 = 0;  // bytes
  int32_t label = 0;
};

// A line is `label<TAB>id1<TAB>id2<TAB>text1<TAB>text2`, its label 0.0 or 1.0 (also 0 or 1). Quotes mean nothing, so a
// text holds any byte but TAB and LF. The ids are not looked at.
class LineScanner {
 public:
  static constexpr uint64_t kLongestLine = uint64_t{64} << 20;

  void start(uint64_t offset);       // of the line in its file
  void take(std::string_view part);  // the line's next bytes, without its LF
  // The line is complete; a CR at its end belongs to the ending. `row` is set when nothing is wrong.
  Fault finish(RowPlace& row);
  std::string detail(Fault fault) const;  // what is wrong with the line that was finished, and what would be right

 private:
  static constexpr size_t kTabs = 4;
  static constexpr size_t kShown = 24;  // bytes of a wrong label that an error line repeats

  uint64_t offset_ = 0;
  uint64_t length_ = 0;
  uint64_t tabs_ = 0;
  std::array<uint64_t, kTabs> tab_{};  // places of the first tabs, from the line's beginning
  std::string label_;                  // the first field, cut behind kShown bytes
  char last_ = 0;
};

}  // namespace lra::retrieval
