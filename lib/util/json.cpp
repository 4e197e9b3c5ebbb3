// JSON in and out: errors say where, output is always valid JSON.
#include "lib/util/json.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra {
namespace {

constexpr int kMaxDepth = 64;       // nesting beyond what any file of ours has; dump and destructors recurse
constexpr size_t kMaxKeys = 4096;   // of one object
constexpr size_t kMaxReason = 160;  // characters of the parser's own words in a message

// "[json.exception.parse_error.101] parse error at line 3, column 7: syntax error while …" without its first half.
std::string parser_words(const std::string& what) {
  size_t begin = what.find("column ");
  begin = begin == std::string::npos ? what.find("] ") : what.find(": ", begin);
  std::string words = begin == std::string::npos ? what : what.substr(begin + 2);
  if (words.size() > kMaxReason) words = words.substr(0, kMaxReason) + "…";
  return words;
}

// Watches a parser and stops taking what no file of ours holds. An object searches its keys one after the other, so
// that their number has to be bounded too.
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (!fault_.empty()) return false;
    if (depth > kMaxDepth) {
      fault_ = fmt::format("nested deeper than {} levels", kMaxDepth);
    } else if (event == Json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == Json::parse_event_t::key) {
      if (!keys_.back().insert(value.get<std::string>()).second) {
        fault_ = fmt::format("key {} stands twice in one object", dump_json(value));
      } else if (keys_.back().size() > kMaxKeys) {
        fault_ = fmt::format("an object of more than {} keys", kMaxKeys);
      }
    }
    return fault_.empty();
  }
  const std::string& fault() const { return fault_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string fault_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& name) {
  Watch watch;
  const auto observe = [&](int depth, Json::parse_event_t event, Json& value) {
    if (!watch(depth, event, value)) throw InputError("{}: {}", name, watch.fault());
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), observe);
  } catch (const Json::parse_error& error) {
    const size_t end = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const std::string_view before = text.substr(0, end);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    throw InputError("{}:{}:{}: not JSON: {}", name, line, end - line_start + 1, parser_words(error.what()));
  } catch (const Json::exception& error) {  // a number out of range
    throw InputError("{}: not JSON: {}", name, parser_words(error.what()));
  }
}

std::optional<Json> try_parse_json(std::string_view text) {
  Watch watch;
  Json json = Json::parse(
      text.begin(), text.end(),
      [&](int depth, Json::parse_event_t event, Json& value) { return watch(depth, event, value); }, false);
  if (json.is_discarded() || !watch.fault().empty()) return std::nullopt;
  return json;
}

Json read_json(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lra
