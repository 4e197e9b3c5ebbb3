// A recipe: every number of a model and its training. The numbers stand in tasks/recipes/*.json, for each task; users
// change single fields, or write a file {"base": "nystromformer", "key": value, …}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/config.h"
#include "lib/util/fields.h"
#include "tasks/task.h"

namespace lra {

struct Recipe {
  // Not fields: what --recipe says, of a file its name without ".json"; how many examples a set has that is generated
  // on first use, 0 = the task's own number; what a user should know of a built-in recipe, one line.
  std::string name;
  int64_t generated = 0;
  std::string note = {};

  int64_t steps = 0, batch_size = 0;
  double learning_rate = 0.0;
  int64_t warmup = 0;
  std::string schedule = "one-cycle";
  int64_t layers = 0, heads = 0, dim = 0, qkv_dim = 0, hidden = 0;
  double dropout = 0.0, attention_dropout = 0.0;
  int64_t max_length = 0, padded_length = 0;
  std::string pooling = "mean-padded";
  double weight_decay = 0.0, beta2 = 0.999, epsilon = 1e-6, clip_norm = 0.0;
  int64_t eval_every = 0, eval_examples = 0, test_examples = 0;
  std::string validation = "given";
  std::optional<std::string> pixel_tokens;
  std::string positions = "learned";
  bool attention_bias = true;
  std::optional<std::string> pair_head;
  std::string gelu = "exact";
  double norm_epsilon = 1e-5;
  std::string init = "nystromformer";

  template <class Self, class Visit>
  static void visit_fields(Self& self, Visit&& visit);
};

// Names of the recipes that are built in, the default first; without those that say "listed": false.
std::vector<std::string> recipe_names();

// A built-in recipe or, where the word has a '/' or ends in ".json", a file. Not resolved yet. UsageError on unknown
// names, keys and values, InputError on a file that can't be read.
Recipe load_recipe(const std::string& name_or_file, const TaskFacts& task);

// Another number of steps: warm-up becomes max(2, round(w S/S0)), at most S - 1 (0 when S <= 2), evaluation comes every
// max(1, round(e S/S0), ceil(S/10)) steps (0 stays 0), unless they are fixed. Returns a line that says so.
std::string scale_steps(Recipe& recipe, int64_t steps, bool fixed_warmup, bool fixed_eval_every);

// Fills in what follows from other fields (qkv_dim and padded_length 0) and refuses what does not fit together:
// UsageError naming the field.
void resolve_recipe(Recipe& recipe, const TaskFacts& task);

// "name" and all fields.
Json recipe_to_json(const Recipe& recipe);
// Of recipe_to_json.
Recipe recipe_from_json(const Json& json, const std::string& where);

// The model of a resolved recipe. `attention` is a canonical spec.
ModelConfig model_config(const Recipe& recipe, const TaskFacts& task, const std::string& attention);
// The recipe fields that a model fixes, from it; fields of training keep their values.
void set_model_fields(Recipe& recipe, const ModelConfig& model);
bool is_model_field(const std::string& name);

template <class Self, class Visit>
void Recipe::visit_fields(Self& self, Visit&& visit) {
  constexpr double kSteps = 1e12, kRows = 1e9, kSize = 65536, kLength = 1048576;
  visit(self.steps, Field{.name = "steps", .help = "number of updates", .least = 1, .most = kSteps});
  visit(self.batch_size, Field{.name = "batch_size", .help = "examples an update", .least = 1, .most = kLength});
  visit(self.learning_rate, Field{.name = "learning_rate", .help = "peak of the schedule", .least = 0, .most = 1e3});
  visit(self.warmup, Field{.name = "warmup", .help = "updates until the peak", .least = 0, .most = kSteps});
  visit(self.schedule, Field{.name = "schedule",
                             .help = "course of the learning rate",
                             .choices = {"one-cycle", "rsqrt", "cosine", "constant"}});
  visit(self.layers, Field{.name = "layers", .help = "encoder blocks", .least = 1, .most = 1024});
  visit(self.heads, Field{.name = "heads", .help = "attention heads", .least = 1, .most = kSize});
  visit(self.dim, Field{.name = "dim", .help = "model width", .least = 1, .most = kSize});
  visit(self.qkv_dim,
        Field{.name = "qkv_dim", .help = "width of queries, keys and values, 0 = dim", .least = 0, .most = kSize});
  visit(self.hidden, Field{.name = "hidden", .help = "width of the MLPs", .least = 1, .most = kSize});
  visit(self.dropout, Field{.name = "dropout", .help = "after embedding, attention and MLP", .least = 0, .most = 0.99});
  visit(self.attention_dropout,
        Field{.name = "attention_dropout", .help = "of attention weights", .least = 0, .most = 0.99});
  visit(self.max_length,
        Field{.name = "max_length", .help = "tokens an example is cut at", .least = 1, .most = kLength});
  visit(self.padded_length, Field{.name = "padded_length",
                                  .help = "position table, 0 = max_length to a power of 2",
                                  .least = 0,
                                  .most = kLength});
  visit(self.pooling, Field{.name = "pooling",
                            .help = "how tokens become one vector",
                            .choices = {"mean-padded", "mean", "cls", "cls-vector"}});
  visit(self.weight_decay, Field{.name = "weight_decay", .help = "decoupled, as in AdamW", .least = 0, .most = 1e3});
  visit(self.beta2, Field{.name = "beta2", .help = "of Adam", .least = 0, .most = 0.9999999});
  visit(self.epsilon, Field{.name = "epsilon", .help = "of Adam", .least = 1e-30, .most = 1});
  visit(self.clip_norm, Field{.name = "clip_norm", .help = "gradient clipping, 0 = off", .least = 0, .most = 1e30});
  visit(self.eval_every,
        Field{.name = "eval_every", .help = "updates between evaluations, 0 = at the end", .least = 0, .most = kSteps});
  visit(
      self.eval_examples,
      Field{.name = "eval_examples", .help = "first validation rows in training, 0 = all", .least = 0, .most = kRows});
  visit(self.test_examples,
        Field{.name = "test_examples", .help = "first test rows used, 0 = all", .least = 0, .most = kRows});
  visit(self.validation, Field{.name = "validation", .help = "where the validation split comes from"});
  visit(self.pixel_tokens,
        Field{.name = "pixel_tokens", .help = "ids of grey levels, pictures only", .choices = {"raw", "shifted"}});
  visit(self.positions,
        Field{.name = "positions", .help = "kind of position vectors", .choices = {"learned", "sinusoidal"}});
  visit(self.attention_bias, Field{.name = "attention_bias", .help = "biases in attention's linear layers"});
  visit(self.pair_head,
        Field{.name = "pair_head", .help = "head over two documents, pair tasks only", .choices = {"four", "two"}});
  visit(self.gelu, Field{.name = "gelu", .help = "form of GELU", .choices = {"exact", "tanh"}});
  visit(self.norm_epsilon, Field{.name = "norm_epsilon", .help = "of LayerNorm", .least = 1e-30, .most = 1});
  visit(self.init, Field{.name = "init", .help = "start weights", .choices = {"nystromformer", "lra"}});
}

}  // namespace lra
