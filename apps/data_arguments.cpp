// What the commands of lra-data share in reading their arguments.
#include <charconv>
#include <iostream>
#include <system_error>

#include "apps/data_commands.h"
#include "lib/util/build_info.h"
#include "lib/util/check.h"

namespace lra {

std::optional<cxxopts::ParseResult> parse_data_command(cxxopts::Options& options, const std::string& examples, int argc,
                                                       char** argv) {
  options.add_options()("h,help", "this text")("version", "version, commit and libraries");
  options.set_width(110);
  cxxopts::ParseResult result = options.parse(argc, argv);
  if (result.count("help") > 0) {
    std::cout << options.help({""}) << "\nExamples:\n" << examples;
    return std::nullopt;
  }
  if (result.count("version") > 0) {
    std::cout << version_text("lra-data");
    return std::nullopt;
  }
  const std::string command = argv[0];
  if (!result.unmatched().empty()) {
    throw UsageError("{}: '{}' is one argument too many (see lra-data {} --help)", command, result.unmatched().front(),
                     command);
  }
  return result;
}

void require_data_task(const cxxopts::ParseResult& arguments, const std::string& command) {
  if (arguments.count("task") == 0) throw UsageError("{}: no task given; known is listops", command);
  const auto task = arguments["task"].as<std::string>();
  if (task != "listops") throw UsageError("{}: unknown task '{}'; known is listops", command, task);
}

std::string required_data_path(const cxxopts::ParseResult& arguments, const std::string& command) {
  std::string path = arguments.count("path") > 0 ? arguments["path"].as<std::string>() : "";
  if (path.empty()) throw UsageError("{} listops: no PATH given, the folder of the data", command);
  return path;
}

uint64_t data_number(const cxxopts::ParseResult& arguments, const std::string& name, uint64_t least, uint64_t most) {
  const auto text = arguments[name].as<std::string>();
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UsageError("--{} {}: must be a whole number from {} to {}", name, text, least, most);
  }
  return value;
}

}  // namespace lra
