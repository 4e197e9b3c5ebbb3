// Everything that decides what a run computes, resolved from the command line. It is kept in the run folder: on resume
// options that are not given come from there, and those that are given must agree.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/config.h"
#include "lib/util/json.h"
#include "tasks/recipe.h"
#include "tasks/run/options.h"

namespace lra {

struct RunSettings {
  std::string task, attention;  // attention: canonical spec
  int64_t seed = 0;
  std::optional<std::string> data, init;  // absolute paths
  std::string order = "shuffled", backend = "cpu", precision = "float32";
  int64_t limit_train = 0, limit_eval = 0, eval_batch_size = 32;
  bool strict = false, norms = false;
  int64_t maps = 0;
  int64_t size = 32;  // these two: Pathfinder
  std::string level = "14";
  int64_t generated = 0;   // examples of a generated set, 0 = the task's own number
  int64_t log_every = 50;  // these two may change on resume
  double checkpoint_every = 60.0;

  Recipe recipe_base;  // as --recipe gives it
  Recipe recipe;       // with all changes, resolved

  ModelConfig model(const TaskFacts& task) const { return model_config(recipe, task, attention); }

  template <class Self, class Visit>
  static void visit_fields(Self& self, Visit&& visit) {
    visit(self.task, Field{.name = "task"});
    visit(self.attention, Field{.name = "attention"});
    visit(self.seed, Field{.name = "seed"});
    visit(self.data, Field{.name = "data"});
    visit(self.init, Field{.name = "init"});
    visit(self.order, Field{.name = "order"});
    visit(self.backend, Field{.name = "backend"});
    visit(self.precision, Field{.name = "precision"});
    visit(self.limit_train, Field{.name = "limit_train"});
    visit(self.limit_eval, Field{.name = "limit_eval"});
    visit(self.eval_batch_size, Field{.name = "eval_batch_size"});
    visit(self.strict, Field{.name = "strict"});
    visit(self.norms, Field{.name = "norms"});
    visit(self.maps, Field{.name = "maps"});
    visit(self.size, Field{.name = "size"});
    visit(self.level, Field{.name = "level"});
    visit(self.generated, Field{.name = "generated"});
    visit(self.log_every, Field{.name = "log_every"});
    visit(self.checkpoint_every, Field{.name = "checkpoint_every"});
  }
};

// A picture of another size than the recipe's has other lengths; what the command line says about them stands.
void fit_to_size(Recipe& recipe, const TaskFacts& task, const CommandLine& line);

// Of a fresh run. UsageError on whatever does not fit together. `notes` gets what the user should know: the recipe's
// note, and what the steps rule did.
RunSettings resolve_settings(const TaskFacts& task, const CommandLine& line, std::vector<std::string>& notes);

// Of a run that was started before, whose settings_to_json is `saved`. UsageError naming the first given option that
// does not agree.
RunSettings resume_settings(const TaskFacts& task, const CommandLine& line, const Json& saved,
                            const std::filesystem::path& folder);

// Whether a setting may be another one on resume: it has no part in what the run computes.
bool may_change(const std::string& name);

Json settings_to_json(const RunSettings& settings);
// Of settings_to_json; InputError with `where`.
RunSettings settings_from_json(const TaskFacts& task, const Json& json, const std::string& where);

// <root>/<task>/<recipe>/<slug of the attention>/seed-<n>, from the given options and defaults.
std::filesystem::path run_folder(const std::filesystem::path& root, const TaskFacts& task, const CommandLine& line);
inline constexpr const char* kRunsFolder = "runs";  // the root where none is given

}  // namespace lra
