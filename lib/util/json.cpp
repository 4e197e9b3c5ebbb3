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
constexpr size_t kMaxReason = 160;  // characters of the parser's own words in a message

// "[json.exception.parse_error.101] parse error at line 3, column 7: syntax error while …" without its first half.
std::string parser_words(const std::string& what) {
  size_t begin = what.find("column ");
  begin = begin == std::string::npos ? what.find("] ") : what.find(": ", begin);
  std::string words = begin == std::string::npos ? what : what.substr(begin + 2);
  if (words.size() > kMaxReason) words = words.substr(0, kMaxReason) + "…";
  return words;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& name) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto observe = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) throw InputError("{}: nested deeper than {} levels", name, kMaxDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw InputError("{}: key {} stands twice in one object", name, dump_json(value));
    }
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

Json read_json(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lra
