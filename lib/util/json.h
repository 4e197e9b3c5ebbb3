// JSON with the order of keys kept (nlohmann::ordered_json).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lra {

using Json = nlohmann::ordered_json;

// Parses a file; InputError naming file, line and column when it is not JSON, or the key that an object holds twice, or
// that an object has more than 4,096 keys.
Json read_json(const std::filesystem::path& path);
// The same of text in memory; `name` stands for the file in messages.
Json parse_json(std::string_view text, const std::string& name);
// The same where errors are frequent and no message is wanted: nothing is thrown.
std::optional<Json> try_parse_json(std::string_view text);
// Text of a document: bytes that are not UTF-8 are replaced, numbers that are not finite become null.
std::string dump_json(const Json& json, int indent = -1);

}  // namespace lra
