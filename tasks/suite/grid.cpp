#include "tasks/suite/grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "lib/attention/registry.h"
#include "lib/util/check.h"
#include "lib/util/fields.h"
#include "lib/util/json.h"
#include "tasks/all_tasks.h"
#include "tasks/recipe.h"
#include "tasks/run/options.h"

namespace lra {

namespace {

constexpr int64_t kMostSeeds = 100000;

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string text_of(const Json& json, const std::string& where) {
  if (!json.is_string()) throw UsageError("{}: {} is not a text", where, shown(json.dump()));
  return json.get<std::string>();
}

std::vector<std::string> texts_of(const Json& json, const std::string& where) {
  if (!json.is_array() || json.empty()) throw UsageError("{}: want a list of texts", where);
  std::vector<std::string> texts;
  for (const Json& entry : json) texts.push_back(text_of(entry, where));
  return texts;
}

// Value of an option as the command line takes it.
std::string value_text(const Json& json, const std::string& where) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number() || json.is_boolean()) return json.dump();
  throw UsageError("{}: {} is none of text, number, true and false", where, shown(json.dump()));
}

std::string option_word(const std::string& key, const Json& value, const std::string& where) {
  const std::string name = option_name(field_key(key));
  if (key == "set") return "--set=" + text_of(value, where + ": " + key);
  if (has_field<RunOptions>(key)) return "--" + name + "=" + value_text(value, where + ": " + key);
  if (has_field<Recipe>(key)) return "--set=" + field_key(key) + "=" + value_text(value, where + ": " + key);
  std::vector<std::string> known = field_names<RunOptions>();
  for (const std::string& field : field_names<Recipe>()) known.push_back(field);
  throw UsageError("{}: unknown option '{}'{}", where, shown(key), did_you_mean(field_key(key), known));
}

std::vector<std::string> option_words(const Json& json, const std::string& where) {
  if (!json.is_object()) throw UsageError("{}: want an object of options and values", where);
  std::vector<std::string> words;
  for (const auto& [key, value] : json.items()) words.push_back(option_word(key, value, where));
  return words;
}

void read_sweep(Grid& grid, const Json& json, const std::string& where) {
  if (!json.is_object() || json.size() != 1 || !json.begin().value().is_array() || json.begin().value().empty()) {
    throw UsageError("{}: want {{\"option\": [value, …]}}, one option", where);
  }
  const std::string key = json.begin().key();
  const std::string at = fmt::format("{}: {}", where, key);
  for (const Json& value : json.begin().value()) {
    grid.sweep_values.push_back({value_text(value, at), option_word(key, value, where)});
  }
  grid.sweep_option = option_name(field_key(key));
}

Grid grid_of(const Json& json, const std::string& name, const std::string& where) {
  if (!json.is_object()) throw UsageError("{}: want a JSON object with tasks and attentions", where);
  Grid grid;
  grid.name = name;
  const auto key_where = [&](const std::string& key) { return where + ": " + key; };
  for (const auto& [key, value] : json.items()) {
    const std::string at = key_where(key);
    if (key == "about") {
      grid.about = text_of(value, at);
    } else if (key == "tasks") {
      grid.tasks = parse_tasks(
          at, value.is_string() ? value.get<std::string>() : fmt::format("{}", fmt::join(texts_of(value, at), ",")));
    } else if (key == "attentions") {
      grid.attentions = value.is_string() ? std::vector{value.get<std::string>()} : texts_of(value, at);
    } else if (key == "seeds") {
      const bool list =
          value.is_array() && !value.empty() &&
          std::all_of(value.begin(), value.end(), [](const Json& seed) { return seed.is_number_integer(); });
      if (!list && !value.is_string()) throw UsageError("{}: want a text such as \"0-4\" or a list of numbers", at);
      grid.seeds = parse_seeds(
          at, list ? fmt::format("{}", fmt::join(value.get<std::vector<int64_t>>(), ",")) : value.get<std::string>());
    } else if (key == "recipe") {
      grid.recipe = text_of(value, at);
    } else if (key == "options") {
      grid.options = option_words(value, at);
    } else if (key == "task_options") {
      if (!value.is_object()) throw UsageError("{}: want an object with an object of options a task", at);
      for (const auto& [task, options] : value.items()) {
        parse_tasks(at, task);
        grid.task_options[task] = option_words(options, fmt::format("{}: {}", at, task));
      }
    } else if (key == "sweep") {
      read_sweep(grid, value, at);
    } else {
      throw UsageError(
          "{}: unknown key '{}'; want about, tasks, attentions, seeds, recipe, options, task_options, sweep", where,
          shown(key));
    }
  }
  if (grid.tasks.empty()) throw UsageError("{}: tasks: missing; want \"all\" or a list of names", where);
  if (grid.attentions.empty()) throw UsageError("{}: attentions: missing; want a list of specs", where);
  try {
    grid.attentions = parse_attentions(grid.attentions);
  } catch (const UsageError& error) {
    throw UsageError("{}: attentions: {}", where, error.what());
  }
  return grid;
}

}  // namespace

std::vector<std::string> grid_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : grid_files()) names.push_back(name);
  return names;
}

Grid load_grid(const std::string& name_or_file) {
  const auto built_in = grid_files().find(name_or_file);
  if (built_in != grid_files().end()) {
    return grid_of(parse_json(built_in->second, name_or_file), name_or_file, "grid " + name_or_file);
  }
  if (name_or_file.find('/') == std::string::npos && !name_or_file.ends_with(".json")) {
    throw UsageError("--grid: unknown grid '{}'; want {} or a file ending in .json", name_or_file,
                     fmt::join(grid_names(), ", "));
  }
  const std::filesystem::path path = name_or_file;
  return grid_of(read_json(path), path.stem().string(), "grid " + path.string());
}

std::vector<std::string> parse_tasks(const std::string& where, const std::string& text) {
  if (text == "all") return task_names();
  const std::vector<std::string> words = split_at_commas(text);
  for (const std::string& word : words) make_task(where, word);
  std::vector<std::string> tasks;
  for (const std::string& name : task_names()) {
    if (std::find(words.begin(), words.end(), name) != words.end()) tasks.push_back(name);
  }
  return tasks;
}

std::vector<int64_t> parse_seeds(const std::string& where, const std::string& text) {
  std::set<int64_t> seeds;
  const auto bad = [&]() -> UsageError {
    return UsageError("{}: '{}' is not a list of seeds such as 0-4 or 0,2,5-7", where, shown(text));
  };
  for (const std::string& part : split_at_commas(text)) {
    const char* const end = part.data() + part.size();
    int64_t first = -1, last = -1;
    auto [stop, error] = std::from_chars(part.data(), end, first);
    if (error != std::errc() || first < 0) throw bad();
    last = first;
    if (stop != end) {
      if (*stop != '-') throw bad();
      const auto [rest, range_error] = std::from_chars(stop + 1, end, last);
      if (range_error != std::errc() || rest != end || last < first) throw bad();
    }
    if (last - first >= kMostSeeds) throw UsageError("{}: more than {} seeds", where, kMostSeeds);
    for (int64_t seed = first; seed <= last; ++seed) seeds.insert(seed);
  }
  return {seeds.begin(), seeds.end()};
}

std::vector<std::string> parse_attentions(const std::vector<std::string>& specs) {
  std::vector<std::string> canonical;
  const auto add = [&](const std::string& spec) {
    std::string text = parse_attention(spec).canonical();
    if (std::find(canonical.begin(), canonical.end(), text) == canonical.end()) canonical.push_back(std::move(text));
  };
  for (const std::string& spec : specs) {
    if (spec != "all") {
      add(spec);
      continue;
    }
    for (const AttentionFamily& family : attention_families()) add(family.name);
  }
  return canonical;
}

}  // namespace lra
