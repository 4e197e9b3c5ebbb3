// lra-data show: prints examples as a model gets them.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "apps/data_commands.h"
#include "datasets/listops/folder.h"
#include "datasets/listops/reader.h"
#include "datasets/listops/tokens.h"
#include "lib/util/check.h"

namespace lra {
namespace {

constexpr const char* kExamples = R"(  lra-data show listops data/listops
  lra-data show listops lra_release --split train --index 100 --count 3
)";

Split parse_split(const std::string& name) {
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    if (name == split_name(split)) return split;
  }
  throw UsageError("--split {}: must be train, validation or test", name);
}

void print_row(Split split, int64_t index, std::span<const uint8_t> whole, int32_t label, int64_t max_length) {
  listops::Evaluator evaluator;
  const int value = evaluator.evaluate(whole);
  const bool cut = max_length > 0 && whole.size() > static_cast<size_t>(max_length);
  const std::span<const uint8_t> ids = cut ? whole.first(static_cast<size_t>(max_length)) : whole;
  std::cout << fmt::format("{} {}\n  label   {}\n  value   {}{}\n  length  {} tokens", split_name(split), index, label,
                           value, cut ? " (of the uncut expression)" : "", ids.size());
  if (cut) std::cout << fmt::format(", cut from {}", whole.size());
  std::cout << "\n  tokens ";
  for (const uint8_t id : ids) std::cout << ' ' << listops::token_text(id);
  std::cout << "\n  ids    ";
  for (const uint8_t id : ids) std::cout << ' ' << static_cast<int>(id);
  std::cout << '\n';
}

}  // namespace

int data_show(int argc, char** argv) {
  cxxopts::Options options("lra-data show",
                           "Prints examples as a model gets them: tokens, ids, label and the value of the "
                           "expression.\n");
  options.add_options()("split", "train, validation or test", cxxopts::value<std::string>()->default_value("test"),
                        "NAME")("index", "first example, from 0; bad rows do not count",
                                cxxopts::value<std::string>()->default_value("0"), "I")(
      "count", "how many examples", cxxopts::value<std::string>()->default_value("1"), "N")(
      "max-length", "tokens a row is cut at; 0: never", cxxopts::value<std::string>()->default_value("2000"), "N");
  options.add_options("positional")("task", "", cxxopts::value<std::string>())("path", "",
                                                                               cxxopts::value<std::string>());
  options.positional_help("listops PATH");
  options.parse_positional({"task", "path"});
  const auto arguments = parse_data_command(options, kExamples, argc, argv);
  if (!arguments) return 0;
  require_data_task(*arguments, "show");
  const std::string path = required_data_path(*arguments, "show");
  const Split split = parse_split((*arguments)["split"].as<std::string>());
  const auto index = static_cast<int64_t>(data_number(*arguments, "index", 0, kMostRows));
  const auto count = static_cast<int64_t>(data_number(*arguments, "count", 1, kMostRows));
  const auto max_length = static_cast<int64_t>(data_number(*arguments, "max-length", 0, kMostRows));

  listops::ReadOptions reading;
  reading.max_length = 0;  // the value is that of the whole expression
  reading.limit = index + count;
  const std::filesystem::path folder = listops::find_folder(path);
  const std::unique_ptr<listops::Rows> rows = listops::read_split(folder, split, reading);
  for (const Skipped& skipped : rows->skipped()) {
    std::cerr << fmt::format("left out: {}, {} row{}, the first {}\n", skipped.reason, skipped.count,
                             skipped.count == 1 ? "" : "s", skipped.first);
  }
  if (index >= rows->size()) {
    throw InputError("{}: has {} good rows; --index {} is past the last", (folder / listops::file_name(split)).string(),
                     rows->size(), index);
  }
  for (int64_t i = index; i < rows->size(); ++i) print_row(split, i, rows->ids(i), rows->label(i), max_length);
  return 0;
}

}  // namespace lra
