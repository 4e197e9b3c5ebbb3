#include "lib/util/fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lra {

namespace {

// Levenshtein distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string wanted(const Field& field, const char* kind) {
  const bool low = std::isfinite(field.least), high = std::isfinite(field.most);
  if (low && high) return fmt::format("{} from {} to {}", kind, field_text(field.least), field_text(field.most));
  if (low) return fmt::format("{}, {} or more", kind, field_text(field.least));
  if (high) return fmt::format("{}, {} or less", kind, field_text(field.most));
  return kind;
}

template <class T>
void check_range(const Field& field, const std::string& where, const std::string& text, const char* kind, T value) {
  if (static_cast<double>(value) < field.least || static_cast<double>(value) > field.most) {
    throw UsageError("{}: {} is out of range; want {}", where, text, wanted(field, kind));
  }
}

void check_choice(const Field& field, const std::string& where, std::string_view text, bool none_too) {
  if (field.choices.empty()) return;
  if (std::find(field.choices.begin(), field.choices.end(), text) != field.choices.end()) return;
  throw UsageError("{}: unknown value '{}'; want {}{}", where, text, fmt::join(field.choices, ", "),
                   none_too ? " or none" : "");
}

constexpr const char* kWhole = "a whole number";
constexpr const char* kReal = "a number";

}  // namespace

std::string field_key(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string did_you_mean(std::string_view key, const std::vector<std::string>& names) {
  std::vector<std::pair<size_t, std::string>> near;
  const size_t reach = std::max<size_t>(2, key.size() / 3);
  for (const std::string& name : names) {
    const bool part = key.size() >= 3 && (name.find(key) != std::string::npos || key.find(name) != std::string::npos);
    const size_t away = distance(key, name);
    if (away <= reach || part) near.emplace_back(away, name);
  }
  if (near.empty()) return {};
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (near.size() > 3) near.resize(3);
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text.append(i + 1 == near.size() ? " or " : ", ");
    text.append(near[i].second);
  }
  return text.append("?");
}

void parse_field(const Field& field, const std::string& where, std::string_view text, int64_t& value) {
  int64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw UsageError("{}: '{}' is not {}", where, text, wanted(field, kWhole));
  }
  check_range(field, where, std::string(text), kWhole, parsed);
  value = parsed;
}

void parse_field(const Field& field, const std::string& where, std::string_view text, double& value) {
  double parsed = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(parsed)) {
    throw UsageError("{}: '{}' is not {}", where, text, wanted(field, kReal));
  }
  check_range(field, where, std::string(text), kReal, parsed);
  value = parsed;
}

void parse_field(const Field&, const std::string& where, std::string_view text, bool& value) {
  if (text == "1" || text == "true") {
    value = true;
  } else if (text == "0" || text == "false") {
    value = false;
  } else {
    throw UsageError("{}: '{}' is neither 1 (true) nor 0 (false)", where, text);
  }
}

void parse_field(const Field& field, const std::string& where, std::string_view text, std::string& value) {
  check_choice(field, where, text, false);
  value = text;
}

void parse_field(const Field& field, const std::string& where, std::string_view text,
                 std::optional<std::string>& value) {
  if (text == "none") {
    value.reset();
    return;
  }
  check_choice(field, where, text, true);
  value = std::string(text);
}

void read_field(const Field& field, const std::string& where, const Json& json, int64_t& value) {
  // 1e3 and 1000.0 are whole numbers too: JSON knows only one kind.
  const double real = json.is_number() ? json.get<double>() : 0.5;
  if (std::floor(real) != real || std::fabs(real) > 9007199254740992.0) {
    throw UsageError("{}: {} is not {}", where, dump_json(json), wanted(field, kWhole));
  }
  const int64_t parsed = json.is_number_float() ? static_cast<int64_t>(real) : json.get<int64_t>();
  check_range(field, where, dump_json(json), kWhole, parsed);
  value = parsed;
}

void read_field(const Field& field, const std::string& where, const Json& json, double& value) {
  if (!json.is_number()) throw UsageError("{}: {} is not {}", where, dump_json(json), wanted(field, kReal));
  const double parsed = json.get<double>();
  check_range(field, where, dump_json(json), kReal, parsed);
  value = parsed;
}

void read_field(const Field&, const std::string& where, const Json& json, bool& value) {
  if (!json.is_boolean()) throw UsageError("{}: {} is neither true nor false", where, dump_json(json));
  value = json.get<bool>();
}

void read_field(const Field& field, const std::string& where, const Json& json, std::string& value) {
  if (!json.is_string()) throw UsageError("{}: {} is not a text in quotes", where, dump_json(json));
  parse_field(field, where, json.get<std::string>(), value);
}

void read_field(const Field& field, const std::string& where, const Json& json, std::optional<std::string>& value) {
  if (json.is_null()) {
    value.reset();
    return;
  }
  if (!json.is_string()) throw UsageError("{}: {} is neither a text in quotes nor null", where, dump_json(json));
  parse_field(field, where, json.get<std::string>(), value);
}

std::string field_text(int64_t value) { return std::to_string(value); }

std::string field_text(double value) { return fmt::format("{}", value); }

std::string field_text(bool value) { return value ? "1" : "0"; }

std::string field_text(const std::string& value) { return value; }

std::string field_text(const std::optional<std::string>& value) { return value ? *value : "none"; }

}  // namespace lra
