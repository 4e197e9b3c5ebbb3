#include "lib/attention/spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lib/util/check.h"

namespace lra {

const std::string& AttentionSpec::get(const std::string& key) const {
  for (const auto& [k, value] : options) {
    if (k == key) return value;
  }
  check(false, "attention '{}' has no option '{}'", name, key);
  std::abort();
}

bool AttentionSpec::flag(const std::string& key) const {
  return std::ranges::any_of(options, [&](const auto& option) { return option.first == key && option.second == "1"; });
}

int64_t AttentionSpec::integer(const std::string& key) const { return std::strtoll(get(key).c_str(), nullptr, 10); }

double AttentionSpec::real(const std::string& key) const { return std::strtod(get(key).c_str(), nullptr); }

std::string AttentionSpec::canonical() const {
  std::vector<std::string> changed;
  for (size_t i = 0; i < known.size(); ++i) {
    if (options[i].second != known[i].default_value) changed.push_back(known[i].key + "=" + options[i].second);
  }
  return name + (changed.empty() ? "" : fmt::format(":{}", fmt::join(changed, ","))) + (xsa ? "+xsa" : "");
}

std::string AttentionSpec::slug() const {
  std::string slug;
  for (const char c : canonical()) {
    if (c == '+') {
      slug += "-plus-";
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.') {
      slug += c;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  return slug;
}

Json AttentionSpec::options_json() const {
  Json json = Json::object();
  for (size_t i = 0; i < known.size(); ++i) {
    const std::string& value = options[i].second;
    switch (known[i].kind) {
      case AttentionOption::Kind::kInteger: json[known[i].key] = std::strtoll(value.c_str(), nullptr, 10); break;
      case AttentionOption::Kind::kReal: json[known[i].key] = std::strtod(value.c_str(), nullptr); break;
      case AttentionOption::Kind::kFlag: json[known[i].key] = value == "1"; break;
      default: json[known[i].key] = value;
    }
  }
  if (xsa) json["xsa"] = true;
  return json;
}

}  // namespace lra
