#include "tasks/run/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cxxopts.hpp>
#include <regex>

#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "tasks/recipe.h"

namespace lra {

namespace {

constexpr int kHelpWidth = 110;

// Recipe fields that are options of their own, with the heading they stand under.
struct DirectOption {
  const char* name;
  const char* group;
};
constexpr DirectOption kDirectOptions[] = {
    {"steps", "Training"},        {"batch_size", "Training"},   {"learning_rate", "Training"},
    {"warmup", "Training"},       {"weight_decay", "Training"}, {"clip_norm", "Training"},
    {"layers", "Model"},          {"heads", "Model"},           {"dim", "Model"},
    {"hidden", "Model"},          {"dropout", "Model"},         {"attention_dropout", "Model"},
    {"max_length", "Model"},      {"padded_length", "Model"},   {"pooling", "Model"},
    {"pixel_tokens", "Model"},    {"eval_every", "Evaluation"}, {"eval_examples", "Evaluation"},
    {"validation", "Evaluation"},
};

bool applies(const DirectOption& option, const TaskFacts& task) {
  return task.pictures || std::string(option.name) != "pixel_tokens";
}

// --size and --level are Pathfinder's.
bool applies(const Field& option, const TaskFacts& task) {
  return task.sized || (option.name != "size" && option.name != "level");
}

// Help of the options whose meaning depends on task or machine.
std::string help_of(const Field& field, const TaskFacts& task) {
  if (field.name == "data") {
    return fmt::format("{} (default: {})", task.data_help, task.generates ? "the generated set" : "none");
  }
  if (field.name == "out") {
    return fmt::format(
        "run folder (default: ./runs/{}/<recipe>/<attention>/seed-<n>; with --evaluate: "
        "<folder of FILE>/evaluate-<split>)",
        task.name);
  }
  if (field.name == "threads")
    return fmt::format("default: as many as this process may use, here {}", default_threads());
  return field.help;
}

cxxopts::Options option_table(const std::string& program, const TaskFacts& task) {
  cxxopts::Options table(program, task.title);
  table.set_width(kHelpWidth);
  table.custom_help("[OPTION...]");
  table.allow_unrecognised_options();
  RunOptions defaults;
  RunOptions::visit_fields(defaults, [&](const auto& value, const Field& field) {
    using T = std::remove_cvref_t<decltype(value)>;
    if (!applies(field, task)) return;
    const std::string name = option_name(field.name), help = help_of(field, task);
    if constexpr (std::is_same_v<T, bool>) {
      table.add_options(field.group)(name, help + " (default: false)", cxxopts::value<bool>()->default_value("false"));
    } else {
      const auto text = cxxopts::value<std::string>();
      const bool has_default = field.name != "threads" && !field_text(value).empty();
      if (has_default) text->default_value(field_text(value));
      table.add_options(field.group)(name, help, text, field.value_name);
    }
  });
  Recipe recipe = load_recipe(defaults.recipe, task);
  for (const DirectOption& option : kDirectOptions) {
    if (!applies(option, task)) continue;
    with_field(recipe, option.name, "option", [&](const auto& value, const Field& field) {
      std::string help = field.help + " (default: the recipe's, here " + field_text(value) + ")";
      if (field.name == "steps") help += "; alone it scales --warmup and --eval-every";
      table.add_options(option.group)(option_name(field.name), help, cxxopts::value<std::string>(), "X");
    });
  }
  table.add_options("Task")("set", "change any field of the recipe (table below); repeatable (default: none)",
                            cxxopts::value<std::string>(), "KEY=VALUE");
  table.add_options("Help")("h,help", "this text")("version", "version, commit and libraries");
  return table;
}

// All fields of a recipe with their values in the built-in ones.
std::string recipe_table(const TaskFacts& task) {
  struct Column {
    Recipe recipe;
    size_t width;
  };
  std::vector<Column> columns;
  std::string head = fmt::format("  {:<19}", "KEY");
  for (const std::string& name : recipe_names()) {
    try {
      Column column{load_recipe(name, task), name.size() + 2};
      for (const std::string& field : field_names<Recipe>()) {
        column.width = std::max(column.width, get_field(column.recipe, field).size() + 2);
      }
      head += fmt::format("{:<{}}", name, column.width);
      columns.push_back(std::move(column));
    } catch (const UsageError&) {
      // This recipe has no numbers for the task.
    }
  }
  std::string text = " Fields of a recipe, for --set and recipe files (- and _ are the same):\n" + head + "meaning\n";
  Recipe::visit_fields(columns.front().recipe, [&](const auto&, const Field& field) {
    text += fmt::format("  {:<19}", field.name);
    for (const Column& column : columns) {
      text += fmt::format("{:<{}}", get_field(column.recipe, field.name), column.width);
    }
    text += field.help + "\n";
  });
  return text;
}

// cxxopts lists what it did not recognise; options and stray words alike.
void refuse_unknown(const std::vector<std::string>& words, const std::vector<std::string>& known,
                    const std::string& program) {
  if (words.empty()) return;
  const std::string& word = words.front();
  if (!word.starts_with("-") || word == "-" || word == "--") {
    throw UsageError("unexpected argument '{}'; options begin with -- (see {} --help)", word, program);
  }
  const std::string name = word.substr(word.find_first_not_of('-'), word.find('=') - word.find_first_not_of('-'));
  throw UsageError("unknown option {}{} (see {} --help)", word.substr(0, word.find('=')), did_you_mean(name, known),
                   program);
}

// cxxopts puts the option's name between typographic quotes; ours begins the message as in every other one.
cxxopts::ParseResult parse_words(cxxopts::Options& table, int argc, const char* const* argv) {
  try {
    return table.parse(argc, argv);
  } catch (const cxxopts::exceptions::missing_argument&) {
    // Only the last word of a command line can lack its value.
    throw UsageError("{}: the value is missing", argv[argc - 1]);
  }
}

RecipeChange recipe_change(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw UsageError("--set: '{}' is not KEY=VALUE", text);
  const std::string key = field_key(text.substr(0, equals));
  return {key, text.substr(equals + 1), "--set " + key};
}

}  // namespace

std::string option_name(std::string field) {
  std::replace(field.begin(), field.end(), '_', '-');
  return field;
}

CommandLine parse_command_line(const std::string& program, const TaskFacts& task, int argc, const char* const* argv) {
  CommandLine line;
  line.words.assign(argv, argv + argc);
  cxxopts::Options table = option_table(program, task);
  const cxxopts::ParseResult result = parse_words(table, argc, argv);
  std::vector<std::string> known = {"set", "help", "version"};
  RunOptions::visit_fields(line.options, [&](const auto&, const Field& field) {
    if (applies(field, task)) known.push_back(option_name(field.name));
  });
  for (const DirectOption& option : kDirectOptions) {
    if (applies(option, task)) known.push_back(option_name(option.name));
  }
  line.help = result.count("help") > 0;
  line.version = result.count("version") > 0;
  if (line.help || line.version) return line;
  refuse_unknown(result.unmatched(), known, program);

  Recipe probe;  // checks values and keys early, before any file is touched
  for (const cxxopts::KeyValue& argument : result.arguments()) {
    const std::string name = field_key(argument.key()), where = "--" + argument.key();
    if (argument.key() == "set") {
      line.changes.push_back(recipe_change(argument.value()));
    } else if (has_field<RunOptions>(name)) {
      set_field(line.options, name, where, argument.value());
      line.given.insert(name);
      if (argument.value().empty()) throw UsageError("{}: the value is empty", where);
    } else {
      line.changes.push_back({name, argument.value(), where});
    }
    if (!line.changes.empty()) {
      const RecipeChange& change = line.changes.back();
      // An unknown key is reported as "--set: unknown key 'x'", a bad value with the key's name.
      if (!has_field<Recipe>(change.key)) set_field(probe, change.key, "--set", change.text);
      set_field(probe, change.key, change.where, change.text);
    }
  }
  const int64_t size = line.options.size;
  if (std::find(std::begin(kPictureSizes), std::end(kPictureSizes), size) == std::end(kPictureSizes)) {
    throw UsageError("--size: {} is none of 32, 64, 128 and 256", size);
  }
  if (line.has("max_time")) parse_duration("--max-time", line.options.max_time);
  return line;
}

std::string help_text(const std::string& program, const TaskFacts& task) {
  cxxopts::Options table = option_table(program, task);
  std::string text = table.help({"Task", "Run", "Training", "Model", "Evaluation", "Machine and output", "Help"});
  text = std::regex_replace(text, std::regex(" +\n"), "\n");
  while (text.ends_with('\n')) text.pop_back();
  text += "\n\n" + recipe_table(task);
  text += fmt::format(R"(
Results go to stdout, progress to stderr. Exit codes: 0 done, 1 files, data or devices, 2 the command line,
130 interrupted after saving. A run folder holds result.json, metrics.jsonl, log.txt, predictions-test.jsonl,
checkpoint-best.safetensors, checkpoint-last.safetensors, optimizer-last.safetensors and state.json; with
--norms also norms.jsonl, with --maps pictures in maps/.

Examples:
  Train cubic attention with the quick recipe, then look at the record:
    {0} --attention polynomial:power=3,scale=16 --recipe quick --out runs/cubic
    cat runs/cubic/result.json
  Train for eight hours, and go on the next day where it stopped:
    {0} --attention softmax --out runs/softmax --max-time 8h
    {0} --resume --out runs/softmax
)",
                      program);
  return text;
}

double parse_duration(const std::string& where, const std::string& text) {
  double seconds = 0.0;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = at != end;
  while (good && at != end) {
    double number = 0.0;
    const auto [stop, error] = std::from_chars(at, end, number, std::chars_format::fixed);
    good = error == std::errc() && std::isfinite(number) && number >= 0;
    if (!good) break;
    const char unit = stop == end ? 's' : *stop;
    const bool bare = stop == end;
    good = (!bare || at == text.data()) && (unit == 's' || unit == 'm' || unit == 'h' || unit == 'd');
    seconds += number * (unit == 'd' ? 86400 : unit == 'h' ? 3600 : unit == 'm' ? 60 : 1);
    at = bare ? end : stop + 1;
  }
  if (!good || !(seconds > 0) || seconds > 1e9) {
    throw UsageError("{}: '{}' is not a duration such as 90, 90s, 10m, 1.5h or 1d12h", where, text);
  }
  return seconds;
}

}  // namespace lra
