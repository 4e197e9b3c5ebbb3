#include "datasets/listops/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "datasets/file_stream.h"
#include "datasets/listops/folder.h"
#include "datasets/listops/tokens.h"
#include "lib/util/check.h"

namespace lra::listops {
namespace {

constexpr std::string_view kHeader = "Source\tTarget";

// One row after another; the row's ids, label and problem stay until the next.
class RowParser {
 public:
  // False for a bad row: reason() is one of few, detail() says what is wrong in this row.
  bool parse(std::string_view line) {
    ids_.clear();
    const size_t tab = line.find('\t');
    const bool two_fields = tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos;
    if (!two_fields) return bad("wrong field count", "must be two fields, Source<TAB>Target");
    const std::string_view target = line.substr(tab + 1);
    if (target.size() != 1 || target[0] < '0' || target[0] > '9') {
      return bad("bad label", fmt::format("the label '{}' is not a digit 0-9", shown(target)));
    }
    label_ = target[0] - '0';
    std::string_view unknown;
    if (!tokenize(line.substr(0, tab), ids_, unknown)) {
      return bad(
          "unknown token",
          fmt::format("unknown token '{}'; known are 0-9, [MAX, [MIN, [MED, [SM, ] and parentheses", shown(unknown)));
    }
    const int value = evaluator_.evaluate(ids_);
    if (value < 0) return bad("unbalanced expression", fmt::format("not one expression: {}", evaluator_.problem()));
    if (value != label_) {
      return bad("label is not the value", fmt::format("the label is {} but the expression is {}", label_, value));
    }
    return true;
  }

  bool bad(std::string reason, std::string detail) {
    reason_ = std::move(reason);
    detail_ = std::move(detail);
    return false;
  }

  const std::vector<uint8_t>& ids() const { return ids_; }
  int32_t label() const { return label_; }
  const std::string& reason() const { return reason_; }
  const std::string& detail() const { return detail_; }

 private:
  std::vector<uint8_t> ids_;
  int32_t label_ = 0;
  Evaluator evaluator_;
  std::string reason_, detail_;
};

}  // namespace

std::unique_ptr<ByteRows> read_split(const std::filesystem::path& folder, Split split, const ReadOptions& options) {
  const std::filesystem::path path = folder / file_name(split);
  auto rows = std::make_unique<ByteRows>(options.max_length);
  LineReader lines(path);
  if (!lines.next() || lines.line() != kHeader) {
    throw InputError("{}:1: the header must be Source<TAB>Target, as in the LRA release", path.string());
  }
  if (options.limit == 0) {
    // The release has one token in 6.3 bytes; its parentheses are most of the file.
    std::error_code ignored;
    const auto bytes = std::filesystem::file_size(path, ignored);
    if (!ignored) rows->reserve(std::min<uintmax_t>(bytes / 6, uintmax_t{1} << 30));
  }
  RowParser parser;
  while ((options.limit == 0 || rows->size() < options.limit) && lines.next()) {
    const bool good =
        lines.too_long()
            ? parser.bad("line too long", fmt::format("the line exceeds {} MiB", LineReader::kLongestLine >> 20))
            : parser.parse(lines.line());
    if (good) {
      rows->append(parser.ids(), parser.label());
    } else if (options.strict) {
      throw InputError("{}:{}: {}", path.string(), lines.number(), parser.detail());
    } else {
      rows->skip(parser.reason(), fmt::format("{}:{}", file_name(split), lines.number()));
    }
  }
  if (split == Split::kTrain) require_training_row(*rows, path);
  return rows;
}

}  // namespace lra::listops
