// JSON with the order of keys kept (nlohmann::ordered_json).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lra {

using Json = nlohmann::ordered_json;

// Parses a file; InputError naming file, line and column when it is not JSON, or the key that an object holds twice.
Json read_json(const std::filesystem::path& path);
// The same of text in memory; `name` stands for the file in messages.
Json parse_json(std::string_view text, const std::string& name);
// Text of a document: bytes that are not UTF-8 are replaced, numbers that are not finite become null.
std::string dump_json(const Json& json, int indent = -1);

}  // namespace lra
