// The commands of lra-data: each parses its own arguments (argv[0] is the command's name) and returns an exit code.
#pragma once

#include <cstdint>
#include <cxxopts.hpp>
#include <optional>
#include <string>

namespace lra {

int data_generate(int argc, char** argv);
int data_check(int argc, char** argv);
int data_show(int argc, char** argv);
int data_sources(int argc, char** argv);

// Adds --help and --version, parses and refuses arguments too many. Nothing when help or version was asked for and
// printed. `examples` end the help.
std::optional<cxxopts::ParseResult> parse_data_command(cxxopts::Options& options, const std::string& examples, int argc,
                                                       char** argv);
// The positional arguments; UsageError where they are missing or the task is unknown.
void require_data_task(const cxxopts::ParseResult& arguments, const std::string& command);
std::string required_data_path(const cxxopts::ParseResult& arguments, const std::string& command);

// An option given as text, read as a whole number between the bounds; UsageError naming the option otherwise.
uint64_t data_number(const cxxopts::ParseResult& arguments, const std::string& name, uint64_t least, uint64_t most);
inline constexpr uint64_t kMostRows = 1'000'000'000;

}  // namespace lra
