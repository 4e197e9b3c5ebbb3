// The commands of lra-data: each parses its own arguments (argv[0] is the command's name) and returns an exit code.
#pragma once

#include <cstdint>
#include <cxxopts.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra {

int data_generate(int argc, char** argv);
int data_check(int argc, char** argv);
int data_show(int argc, char** argv);
int data_sources(int argc, char** argv);
int data_convert(int argc, char** argv);

// Adds --help and --version, parses and refuses arguments too many. Nothing when help or version was asked for and
// printed. `examples` end the help; `groups` are the headings of its options.
std::optional<cxxopts::ParseResult> parse_data_command(cxxopts::Options& options, const std::string& examples, int argc,
                                                       char** argv, const std::vector<std::string>& groups = {""});

// The positional TASK and PATH; UsageError where they are missing or the task is none of `known`.
std::string data_task_name(const cxxopts::ParseResult& arguments, const std::string& command,
                           const std::vector<std::string>& known);
std::filesystem::path required_data_path(const cxxopts::ParseResult& arguments, const std::string& command,
                                         const TaskFacts& task);

// An option given as text, read as a whole number between the bounds; UsageError naming the option otherwise.
uint64_t data_number(const cxxopts::ParseResult& arguments, const std::string& name, uint64_t least, uint64_t most);
// One of a few words or numbers.
std::string data_choice(const cxxopts::ParseResult& arguments, const std::string& name,
                        const std::vector<std::string>& choices);
inline constexpr uint64_t kMostRows = 1'000'000'000;

// How `check` and `show` read a data set.
struct DataReading {
  DataPlace place;
  DataRequest request;     // max_length is kUncut where examples are not to be cut
  int64_t max_length = 0;  // as asked for; 0: never
};
inline constexpr int64_t kUncut = int64_t{1} << 40;  // longer than any file that is read

// --max-length, --validation, --pixel-tokens, --size, --level, --threads, and the positional TASK and PATH.
void add_reading_options(cxxopts::Options& options);
// Defaults are those of the nystromformer recipe. UsageError on an option that the task does not have.
DataReading data_reading(const cxxopts::ParseResult& arguments, const std::string& command, const Task& task);

// "positive" for label 1 of Text; empty where a label is its own name.
std::string label_name(const std::string& task, int32_t label);

}  // namespace lra
