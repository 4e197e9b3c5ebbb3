#include "tasks/run/settings.h"

#include <set>

#include "lib/attention/registry.h"
#include "lib/util/check.h"

namespace lra {

namespace {

const std::set<std::string> kMayChange = {"log_every", "checkpoint_every"};

std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// The settings that are options of the same name, as the command line (with its defaults) gives them.
RunSettings settings_of(const TaskFacts& task, const CommandLine& line) {
  const RunOptions& o = line.options;
  RunSettings s;
  s.task = task.name;
  s.attention = parse_attention(o.attention).canonical();
  s.seed = o.seed;
  if (!o.data.empty()) s.data = absolute_path(o.data);
  if (!o.init.empty()) s.init = absolute_path(o.init);
  s.order = o.order;
  s.backend = o.backend;
  s.precision = o.precision;
  s.limit_train = o.limit_train;
  s.limit_eval = o.limit_eval;
  s.eval_batch_size = o.eval_batch_size;
  s.strict = o.strict;
  s.norms = o.norms;
  s.maps = o.maps;
  s.size = o.size;
  s.level = o.level;
  s.log_every = o.log_every;
  s.checkpoint_every = o.checkpoint_every;
  return s;
}

// The model must exist: attention may refuse the shape that the recipe gives it.
void validate_model(const ModelConfig& config) {
  config.validate();
  make_attention(parse_attention(config.attention),
                 {config.heads, config.head_dim(), config.padded_length, config.dim});
}

[[noreturn]] void disagree(const std::string& where, const std::string& given, const std::string& had,
                           const std::filesystem::path& folder) {
  throw UsageError(
      "{}: {} does not agree with the run in {}, which was started with {}; leave it out or take another "
      "--out",
      where, given, folder.string(), had);
}

void check_recipe_agrees(const TaskFacts& task, const CommandLine& line, const RunSettings& saved,
                         const std::filesystem::path& folder) {
  if (line.has("recipe")) {
    const Recipe given = load_recipe(line.options.recipe, task);
    if (given.name != saved.recipe_base.name) disagree("--recipe", given.name, saved.recipe_base.name, folder);
    for (const std::string& name : field_names<Recipe>()) {
      const std::string now = get_field(given, name), had = get_field(saved.recipe_base, name);
      if (now != had) disagree("--recipe: " + name, now, had, folder);
    }
  }
  Recipe changed = saved.recipe;
  for (const RecipeChange& change : line.changes) set_field(changed, change.key, change.where, change.text);
  if (changed.qkv_dim == 0 || changed.padded_length == 0) resolve_recipe(changed, task);
  for (const RecipeChange& change : line.changes) {
    const std::string now = get_field(changed, change.key), had = get_field(saved.recipe, change.key);
    if (now != had) disagree(change.where, now, had, folder);
  }
}

}  // namespace

void fit_to_size(Recipe& recipe, const TaskFacts& task, const CommandLine& line) {
  if (!task.sized || !line.has("size")) return;
  recipe.max_length = line.options.size * line.options.size;
  recipe.padded_length = 0;
}

RunSettings resolve_settings(const TaskFacts& task, const CommandLine& line, std::vector<std::string>& notes) {
  RunSettings s = settings_of(task, line);
  s.recipe_base = load_recipe(line.options.recipe, task);
  s.generated = s.recipe_base.generated;
  if (!s.recipe_base.note.empty())
    notes.push_back(fmt::format("recipe {}: {}", s.recipe_base.name, s.recipe_base.note));
  s.recipe = s.recipe_base;
  fit_to_size(s.recipe, task, line);
  std::set<std::string> changed;
  for (const RecipeChange& change : line.changes) {
    changed.insert(change.key);
    if (change.key != "steps") set_field(s.recipe, change.key, change.where, change.text);
  }
  if (changed.contains("steps")) {
    Recipe wanted;
    for (const RecipeChange& change : line.changes) set_field(wanted, change.key, change.where, change.text);
    std::string said = scale_steps(s.recipe, wanted.steps, changed.contains("warmup"), changed.contains("eval_every"));
    if (!said.empty()) notes.push_back(std::move(said));
  }
  resolve_recipe(s.recipe, task);
  validate_model(s.model(task));
  return s;
}

RunSettings resume_settings(const TaskFacts& task, const CommandLine& line, const Json& saved_json,
                            const std::filesystem::path& folder) {
  RunSettings saved = settings_from_json(task, saved_json, (folder / "state.json").string());
  if (saved.task != task.name) {
    throw UsageError("--resume: {} holds a run of task {}, not {}", folder.string(), saved.task, task.name);
  }
  RunSettings now = settings_of(task, line);
  for (const std::string& name : line.given) {
    if (!has_field<RunSettings>(name)) continue;
    const std::string given = get_field(now, name), had = get_field(saved, name);
    if (may_change(name)) {
      set_field(saved, name, name, given);
    } else if (given != had) {
      disagree("--" + option_name(name), given, had, folder);
    }
  }
  check_recipe_agrees(task, line, saved, folder);
  return saved;
}

bool may_change(const std::string& name) { return kMayChange.contains(name); }

Json settings_to_json(const RunSettings& settings) {
  Json json = fields_to_json(settings);
  json["recipe_base"] = recipe_to_json(settings.recipe_base);
  json["recipe"] = recipe_to_json(settings.recipe);
  return json;
}

RunSettings settings_from_json(const TaskFacts& task, const Json& json, const std::string& where) {
  RunSettings settings;
  try {
    Json fields = json;
    settings.recipe_base = recipe_from_json(fields.at("recipe_base"), "recipe_base");
    settings.recipe = recipe_from_json(fields.at("recipe"), "recipe");
    fields.erase("recipe_base");
    fields.erase("recipe");
    fields_from_json(settings, fields, "settings");
    validate_model(settings.model(task));
  } catch (const std::exception& error) {
    throw InputError("{}: {}", where, error.what());
  }
  return settings;
}

std::filesystem::path run_folder(const std::filesystem::path& root, const TaskFacts& task, const CommandLine& line) {
  const std::string slug = parse_attention(line.options.attention).slug();
  return root / task.name / load_recipe(line.options.recipe, task).name / slug /
         fmt::format("seed-{}", line.options.seed);
}

}  // namespace lra
