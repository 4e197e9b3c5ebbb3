// What the commands of lra-data share in reading their arguments.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <system_error>

#include "apps/data_commands.h"
#include "lib/util/build_info.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "tasks/all_tasks.h"
#include "tasks/recipe.h"

namespace lra {
namespace {

const std::vector<std::string> kSizes = {"32", "64", "128", "256"};
const std::vector<std::string> kLevels = {"baseline", "9", "14"};
const std::vector<std::string> kPixelTokens = {"raw", "shifted"};

Recipe default_recipe(const Task& task) { return load_recipe(recipe_names().front(), task.facts()); }

// "2000 (listops), 4000 (text, retrieval), ..." of the tasks whose length is no picture's.
std::string default_lengths() {
  std::string text;
  for (const std::string& name : task_names()) {
    const std::unique_ptr<Task> task = make_task("task", name);
    if (task->facts().pictures) continue;
    text += fmt::format("{} {}, ", name, default_recipe(*task).max_length);
  }
  return text + "pictures whole";
}

void refuse_unless(bool fits, const cxxopts::ParseResult& arguments, const std::string& option, const Task& task,
                   const std::string& why) {
  if (!fits && arguments.count(option) > 0) throw UsageError("--{}: task {} {}", option, task.facts().name, why);
}

}  // namespace

std::optional<cxxopts::ParseResult> parse_data_command(cxxopts::Options& options, const std::string& examples, int argc,
                                                       char** argv, const std::vector<std::string>& groups) {
  options.add_options()("h,help", "this text")("version", "version, commit and libraries");
  options.set_width(110);
  cxxopts::ParseResult result = options.parse(argc, argv);
  if (result.count("help") > 0) {
    std::cout << options.help(groups) << "\nExamples:\n" << examples;
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

std::string data_task_name(const cxxopts::ParseResult& arguments, const std::string& command,
                           const std::vector<std::string>& known) {
  if (arguments.count("task") == 0) throw UsageError("{}: no task given; want {}", command, fmt::join(known, ", "));
  auto task = arguments["task"].as<std::string>();
  if (std::find(known.begin(), known.end(), task) == known.end()) {
    throw UsageError("{}: unknown task '{}'; want {}", command, task, fmt::join(known, ", "));
  }
  return task;
}

std::filesystem::path required_data_path(const cxxopts::ParseResult& arguments, const std::string& command,
                                         const TaskFacts& task) {
  const std::string path = arguments.count("path") > 0 ? arguments["path"].as<std::string>() : "";
  if (path.empty()) {
    throw UsageError("{} {}: no PATH given, where the data lies (see lra-data sources {})", command, task.name,
                     task.name);
  }
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

std::string data_choice(const cxxopts::ParseResult& arguments, const std::string& name,
                        const std::vector<std::string>& choices) {
  auto word = arguments[name].as<std::string>();
  if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
    throw UsageError("--{} {}: want {}", name, word, fmt::join(choices, ", "));
  }
  return word;
}

void add_reading_options(cxxopts::Options& options) {
  const auto text = [] { return cxxopts::value<std::string>(); };
  options.add_options()(
      "max-length", "tokens an example is cut at, as a model gets it; 0: never (default: " + default_lengths() + ")",
      text(), "N")(
      "validation", "where that split comes from: given; text and image tenth, text also test (default: the recipe's)",
      text(), "WORD")("pixel-tokens", "ids of grey levels: raw (level 0 is padding) or shifted (level + 1)",
                      text()->default_value("raw"),
                      "WORD")("size", "side of Pathfinder pictures: 32, 64, 128 or 256", text()->default_value("32"),
                              "N")("level", "of Pathfinder: baseline, 9 or 14", text()->default_value("14"), "WORD")(
      "threads", "no effect on what is read; 0: all that this process may use", text()->default_value("0"), "N");
  options.add_options("positional")("task", "", text())("path", "", text());
  options.positional_help("TASK PATH");
  options.parse_positional({"task", "path"});
}

DataReading data_reading(const cxxopts::ParseResult& arguments, const std::string& command, const Task& task) {
  const TaskFacts& facts = task.facts();
  refuse_unless(facts.sized, arguments, "size", task, "has one size only");
  refuse_unless(facts.sized, arguments, "level", task, "has no levels");
  refuse_unless(facts.pictures, arguments, "pixel-tokens", task, "has no pictures");
  const Recipe recipe = default_recipe(task);

  DataChoice choice;
  choice.size = std::stoi(data_choice(arguments, "size", kSizes));
  choice.level = data_choice(arguments, "level", kLevels);
  DataReading reading;
  if (arguments.count("max-length") > 0) {
    reading.max_length = static_cast<int64_t>(data_number(arguments, "max-length", 0, kMostRows));
  } else {
    reading.max_length = facts.sized ? int64_t{choice.size} * choice.size : recipe.max_length;
  }
  DataRequest& request = reading.request;
  request.max_length = reading.max_length == 0 ? kUncut : reading.max_length;
  request.validation =
      arguments.count("validation") > 0 ? data_choice(arguments, "validation", facts.validations) : recipe.validation;
  if (facts.pictures) request.pixel_tokens = data_choice(arguments, "pixel-tokens", kPixelTokens);
  const auto threads = static_cast<int>(data_number(arguments, "threads", 0, 1024));
  request.threads = threads == 0 ? default_threads() : threads;
  choice.path = required_data_path(arguments, command, facts);
  reading.place = task.locate(choice);
  return reading;
}

std::string label_name(const std::string& task, int32_t label) {
  static const std::vector<std::string> text = {"negative", "positive"};
  static const std::vector<std::string> retrieval = {"unrelated", "related"};
  static const std::vector<std::string> image = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                 "dog",      "frog",       "horse", "ship", "truck"};
  static const std::vector<std::string> pathfinder = {"not joined", "joined"};
  static const std::vector<std::string> none;
  const std::vector<std::string>& names = task == "text"         ? text
                                          : task == "retrieval"  ? retrieval
                                          : task == "image"      ? image
                                          : task == "pathfinder" ? pathfinder
                                                                 : none;
  return label >= 0 && static_cast<size_t>(label) < names.size() ? names[static_cast<size_t>(label)] : "";
}

}  // namespace lra
