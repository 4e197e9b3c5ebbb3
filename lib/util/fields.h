// Typed configuration structs with one list of fields. A struct says once, in a static `visit_fields(self, visit)`,
// what each member is called, what it means and which values it takes; parsing, defaults, --help and JSON all come from
// it:
//
//   struct Recipe {
//     int64_t steps = 5000;
//     template <class Self, class Visit>
//     static void visit_fields(Self& self, Visit&& visit) {
//       visit(self.steps, Field{.name = "steps", .help = "number of updates", .least = 1});
//     }
//   };
//
// Members are int64_t, double, bool, std::string or std::optional<std::string> ("none" as text, null in JSON).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lib/util/check.h"
#include "lib/util/json.h"

namespace lra {

struct Field {
  std::string name = {};  // snake_case; `-` and `_` are the same to users
  std::string help = {};
  double least = -std::numeric_limits<double>::infinity();  // numbers, inclusive
  double most = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // text; empty: any
  std::string group = {};                 // heading in --help
  std::string value_name = {};            // "N", "FILE" in --help
};

// The name a key stands for: trimmed of nothing, `-` read as `_`.
std::string field_key(std::string_view key);
// "; did you mean a, b?" with the names closest to `key`, or "" where none is near.
std::string did_you_mean(std::string_view key, const std::vector<std::string>& names);

// Text to value. UsageError "<where>: …" naming the value and what would be right. Numbers must be whole words, finite
// and in the field's range.
void parse_field(const Field& field, const std::string& where, std::string_view text, int64_t& value);
void parse_field(const Field& field, const std::string& where, std::string_view text, double& value);
void parse_field(const Field& field, const std::string& where, std::string_view text, bool& value);
void parse_field(const Field& field, const std::string& where, std::string_view text, std::string& value);
void parse_field(const Field& field, const std::string& where, std::string_view text,
                 std::optional<std::string>& value);

// The same from JSON, where the type must fit too (a number is not a text).
void read_field(const Field& field, const std::string& where, const Json& json, int64_t& value);
void read_field(const Field& field, const std::string& where, const Json& json, double& value);
void read_field(const Field& field, const std::string& where, const Json& json, bool& value);
void read_field(const Field& field, const std::string& where, const Json& json, std::string& value);
void read_field(const Field& field, const std::string& where, const Json& json, std::optional<std::string>& value);

// Value to the text that parse_field reads.
std::string field_text(int64_t value);
std::string field_text(double value);
std::string field_text(bool value);
std::string field_text(const std::string& value);
std::string field_text(const std::optional<std::string>& value);

template <class T>
Json field_json(const T& value) {
  if constexpr (std::is_same_v<T, std::optional<std::string>>) {
    return value ? Json(*value) : Json(nullptr);
  } else {
    return Json(value);
  }
}

template <class Config>
std::vector<std::string> field_names() {
  std::vector<std::string> names;
  Config config;
  Config::visit_fields(config, [&](auto&, const Field& field) { names.push_back(field.name); });
  return names;
}

template <class Config>
bool has_field(std::string_view key) {
  bool found = false;
  Config config;
  Config::visit_fields(config, [&](auto&, const Field& field) { found |= field.name == field_key(key); });
  return found;
}

// Calls use(value, field) for the field `key`. UsageError "<where>: unknown …" when there is none.
template <class Config, class Use>
void with_field(Config& config, std::string_view key, const std::string& where, Use&& use) {
  bool found = false;
  std::remove_const_t<Config>::visit_fields(config, [&](auto& value, const Field& field) {
    if (field.name != field_key(key)) return;
    found = true;
    use(value, field);
  });
  if (!found) {
    throw UsageError("{}: unknown key '{}'{}", where, key,
                     did_you_mean(field_key(key), field_names<std::remove_const_t<Config>>()));
  }
}

template <class Config>
void set_field(Config& config, std::string_view key, const std::string& where, std::string_view text) {
  with_field(config, key, where, [&](auto& value, const Field& field) { parse_field(field, where, text, value); });
}

template <class Config>
std::string get_field(const Config& config, std::string_view key) {
  std::string text;
  with_field(config, key, "field", [&](const auto& value, const Field&) { text = field_text(value); });
  return text;
}

// All fields in their order.
template <class Config>
Json fields_to_json(const Config& config) {
  Json json = Json::object();
  Config::visit_fields(config, [&](const auto& value, const Field& field) { json[field.name] = field_json(value); });
  return json;
}

// Sets the fields that `json` has; errors are "<where>: key: …".
template <class Config>
void fields_from_json(Config& config, const Json& json, const std::string& where) {
  if (!json.is_object()) throw UsageError("{}: want a JSON object of keys and values", where);
  for (const auto& item : json.items()) {
    const Json& entry = item.value();
    with_field(config, item.key(), where,
               [&](auto& value, const Field& field) { read_field(field, where + ": " + field.name, entry, value); });
  }
}

}  // namespace lra
