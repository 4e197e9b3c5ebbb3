#include "tasks/recipe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <set>

#include "lib/util/check.h"
#include "lib/util/json.h"
#include "tasks/recipe_files.h"

namespace lra {

namespace {

constexpr const char* kDefaultRecipe = "nystromformer";
const std::set<std::string> kModelFields = {
    "layers",     "heads",         "dim",     "qkv_dim",      "hidden",    "dropout",        "attention_dropout",
    "max_length", "padded_length", "pooling", "pixel_tokens", "positions", "attention_bias", "pair_head",
    "gelu",       "norm_epsilon",  "init"};

Recipe built_in_recipe(const std::string& name, const TaskFacts& task) {
  const std::string where = "recipe " + name;
  const Json json = Json::parse(recipe_files().at(name));
  Recipe recipe;
  if (json.contains("base")) recipe = built_in_recipe(json.at("base").get<std::string>(), task);
  recipe.name = name;
  fields_from_json(recipe, json.at("all"), where);
  const Json& tasks = json.at("tasks");
  if (!tasks.contains(task.name)) throw UsageError("--recipe: recipe '{}' has no numbers for task {}", name, task.name);
  fields_from_json(recipe, tasks.at(task.name), where);
  if (json.contains("generated")) recipe.generated = json.at("generated").value(task.name, recipe.generated);
  if (json.contains("notes")) recipe.note = json.at("notes").value(task.name, recipe.note);
  return recipe;
}

Recipe recipe_of_file(const std::filesystem::path& path, const TaskFacts& task) {
  Json json = read_json(path);
  const std::string where = "recipe " + path.string();
  if (!json.is_object() || !json.contains("base") || !json["base"].is_string()) {
    throw UsageError("{}: want {{\"base\": \"{}\", \"key\": value, …}}", where, fmt::join(recipe_names(), "\" or \""));
  }
  const std::string base = json["base"].get<std::string>();
  if (!recipe_files().contains(base)) {
    throw UsageError("{}: base: unknown recipe '{}'; want {}", where, base, fmt::join(recipe_names(), ", "));
  }
  json.erase("base");
  Recipe recipe = built_in_recipe(base, task);
  fields_from_json(recipe, json, where);
  recipe.name = path.stem().string();
  recipe.note.clear();
  return recipe;
}

void check_schedule(const Recipe& r) {
  if (r.schedule == "one-cycle" && r.warmup >= r.steps) {
    throw UsageError("warmup: {} is not below steps ({}); want at most {}", r.warmup, r.steps, r.steps - 1);
  }
}

void check_task_fields(const Recipe& r, const TaskFacts& task) {
  if (std::find(task.validations.begin(), task.validations.end(), r.validation) == task.validations.end()) {
    throw UsageError("validation: unknown value '{}'; task {} takes {}", r.validation, task.name,
                     fmt::join(task.validations, ", "));
  }
  if (task.pictures && !r.pixel_tokens) throw UsageError("pixel_tokens: want raw or shifted");
  if (!task.pictures && r.pixel_tokens) throw UsageError("pixel_tokens: task {} has no pictures", task.name);
  if (task.pair && !r.pair_head) throw UsageError("pair_head: want four or two");
  if (!task.pair && r.pair_head) throw UsageError("pair_head: task {} has one document an example", task.name);
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names{kDefaultRecipe};
  for (const auto& [name, text] : recipe_files()) {
    if (name != kDefaultRecipe && Json::parse(text).value("listed", true)) names.push_back(name);
  }
  return names;
}

Recipe load_recipe(const std::string& name_or_file, const TaskFacts& task) {
  if (recipe_files().contains(name_or_file)) return built_in_recipe(name_or_file, task);
  if (name_or_file.find('/') != std::string::npos || name_or_file.ends_with(".json")) {
    return recipe_of_file(name_or_file, task);
  }
  throw UsageError("--recipe: unknown recipe '{}'; want {} or a file ending in .json", name_or_file,
                   fmt::join(recipe_names(), ", "));
}

std::string scale_steps(Recipe& recipe, int64_t steps, bool fixed_warmup, bool fixed_eval_every) {
  const double share = static_cast<double>(steps) / static_cast<double>(recipe.steps);
  const int64_t old_steps = recipe.steps;
  recipe.steps = steps;
  std::string scaled;
  if (!fixed_warmup) {
    const int64_t warmup = std::max<int64_t>(2, std::llround(static_cast<double>(recipe.warmup) * share));
    recipe.warmup = steps <= 2 ? 0 : std::min(warmup, steps - 1);
    scaled += fmt::format("warm-up {}", recipe.warmup);
  }
  if (!fixed_eval_every && recipe.eval_every > 0) {
    const int64_t every = std::llround(static_cast<double>(recipe.eval_every) * share);
    recipe.eval_every = std::max<int64_t>({1, every, (steps + 9) / 10});
    scaled += fmt::format("{}evaluation every {} steps", scaled.empty() ? "" : ", ", recipe.eval_every);
  }
  if (scaled.empty()) return {};
  return fmt::format("steps {} instead of the recipe's {}: {} (--warmup and --eval-every fix them)", steps, old_steps,
                     scaled);
}

void resolve_recipe(Recipe& r, const TaskFacts& task) {
  if (r.qkv_dim == 0) r.qkv_dim = r.dim;
  const int64_t places = r.max_length + (r.pooling == "cls" ? 1 : 0);
  if (r.padded_length == 0) r.padded_length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(places)));
  if (r.padded_length < places) {
    throw UsageError("padded_length: {} is less than the {} places of max_length {}{}", r.padded_length, places,
                     r.max_length, r.pooling == "cls" ? " and the CLS token" : "");
  }
  if (r.qkv_dim % r.heads != 0) {
    throw UsageError("heads: {} heads do not divide the width {} of {}", r.heads, r.qkv_dim,
                     r.qkv_dim == r.dim ? "the model (dim)" : "queries, keys and values (qkv_dim)");
  }
  check_schedule(r);
  check_task_fields(r, task);
}

Json recipe_to_json(const Recipe& recipe) {
  Json json;
  json["name"] = recipe.name;
  json.update(fields_to_json(recipe));
  return json;
}

Recipe recipe_from_json(const Json& json, const std::string& where) {
  Json fields = json;
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) {
    throw UsageError("{}: name: missing", where);
  }
  Recipe recipe;
  recipe.name = json["name"].get<std::string>();
  fields.erase("name");
  for (const std::string& name : field_names<Recipe>()) {
    if (!fields.contains(name)) throw UsageError("{}: {}: missing", where, name);
  }
  fields_from_json(recipe, fields, where);
  return recipe;
}

ModelConfig model_config(const Recipe& r, const TaskFacts& task, const std::string& attention) {
  ModelConfig c;
  c.task = task.name;
  c.vocabulary = task.vocabulary;
  c.classes = task.classes;
  c.max_length = static_cast<int>(r.max_length);
  c.padded_length = static_cast<int>(r.padded_length);
  c.dim = static_cast<int>(r.dim);
  c.qkv_dim = static_cast<int>(r.qkv_dim);
  c.hidden = static_cast<int>(r.hidden);
  c.heads = static_cast<int>(r.heads);
  c.layers = static_cast<int>(r.layers);
  c.dropout = static_cast<float>(r.dropout);
  c.attention_dropout = static_cast<float>(r.attention_dropout);
  c.pooling = r.pooling;
  c.pair = task.pair;
  c.attention = attention;
  c.attention_bias = r.attention_bias;
  c.positions = r.positions;
  c.gelu = r.gelu == "tanh" ? Gelu::kTanh : Gelu::kExact;
  c.norm_epsilon = static_cast<float>(r.norm_epsilon);
  c.pair_head = r.pair_head.value_or(c.pair_head);
  c.init = r.init;
  c.pixel_tokens = r.pixel_tokens.value_or("");
  return c;
}

void set_model_fields(Recipe& recipe, const ModelConfig& model) {
  // A float's shortest text, read as a double, is the number the user wrote.
  const auto widen = [](float value) { return std::stod(fmt::format("{}", value)); };
  recipe.max_length = model.max_length;
  recipe.padded_length = model.padded_length;
  recipe.dim = model.dim;
  recipe.qkv_dim = model.qkv_dim;
  recipe.hidden = model.hidden;
  recipe.heads = model.heads;
  recipe.layers = model.layers;
  recipe.dropout = widen(model.dropout);
  recipe.attention_dropout = widen(model.attention_dropout);
  recipe.pooling = model.pooling;
  recipe.attention_bias = model.attention_bias;
  recipe.positions = model.positions;
  recipe.gelu = model.gelu == Gelu::kTanh ? "tanh" : "exact";
  recipe.norm_epsilon = widen(model.norm_epsilon);
  recipe.pair_head = model.pair ? std::optional<std::string>(model.pair_head) : std::nullopt;
  recipe.init = model.init;
  recipe.pixel_tokens = model.pixel_tokens.empty() ? std::nullopt : std::optional<std::string>(model.pixel_tokens);
}

bool is_model_field(const std::string& name) { return kModelFields.contains(name); }

}  // namespace lra
