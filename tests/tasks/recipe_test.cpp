// Recipes: the figures of the two originals, the rule of --steps, and what is refused.
#include "tasks/recipe.h"

#include <gtest/gtest.h>

#include "lib/util/check.h"
#include "tasks/all_tasks.h"
#include "tasks/listops.h"
#include "tasks/recipe_files.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {
namespace {

const TaskFacts& listops() {
  static const ListopsTask task;
  return task.facts();
}

Recipe resolved(const std::string& name) {
  Recipe recipe = load_recipe(name, listops());
  resolve_recipe(recipe, listops());
  return recipe;
}

TEST(Recipe, NystromformerIsThePaperSetting) {
  EXPECT_EQ(dump_json(recipe_to_json(resolved("nystromformer"))),
            R"({"name":"nystromformer","steps":5000,"batch_size":32,"learning_rate":0.0001,"warmup":1000,)"
            R"("schedule":"one-cycle","layers":2,"heads":2,"dim":64,"qkv_dim":64,"hidden":128,"dropout":0.1,)"
            R"("attention_dropout":0.1,"max_length":2000,"padded_length":2048,"pooling":"mean-padded",)"
            R"("weight_decay":0.0,"beta2":0.999,"epsilon":1e-06,"clip_norm":0.0,"eval_every":50,"eval_examples":0,)"
            R"("test_examples":0,"validation":"given","pixel_tokens":null,"positions":"learned",)"
            R"("attention_bias":true,"pair_head":null,"gelu":"exact","norm_epsilon":1e-05,"init":"nystromformer"})");
}

TEST(Recipe, LraIsTheOriginalCode) {
  const Recipe r = resolved("lra");
  EXPECT_EQ(r.schedule, "rsqrt");
  EXPECT_EQ(r.learning_rate, 0.05);
  EXPECT_EQ(std::vector<int64_t>({r.dim, r.qkv_dim, r.heads, r.layers, r.hidden, r.steps, r.warmup, r.eval_every}),
            std::vector<int64_t>({512, 512, 8, 4, 1024, 5000, 1000, 50}));
  EXPECT_EQ(r.pooling, "cls-vector");
  EXPECT_EQ(r.weight_decay, 0.1);
  EXPECT_EQ(r.beta2, 0.98);
  EXPECT_EQ(r.epsilon, 1e-9);
  EXPECT_EQ(r.gelu, "tanh");
  EXPECT_EQ(r.positions, "sinusoidal");
  EXPECT_FALSE(r.attention_bias);
  EXPECT_EQ(r.init, "lra");
  EXPECT_EQ(r.padded_length, 2048);
}

// The two tables of figures, a row a task.
TEST(Recipe, FiguresOfEveryTask) {
  struct Row {
    const char *recipe, *task;
    std::vector<int64_t> sizes;  // dim, qkv_dim, heads, layers, hidden
    std::vector<int64_t> run;    // max_length, padded_length, batch_size, steps, warmup, eval_every
    const char *pooling, *schedule, *validation;
    double learning_rate, weight_decay, dropout, attention_dropout;
  };
  const std::vector<int64_t> small = {64, 64, 2, 2, 128};
  const Row rows[] = {
      {"nystromformer",
       "text",
       small,
       {4000, 4096, 32, 20000, 8000, 500},
       "mean-padded",
       "one-cycle",
       "tenth",
       1e-4,
       0,
       0.1,
       0.1},
      {"nystromformer",
       "retrieval",
       small,
       {4000, 4096, 32, 30000, 800, 300},
       "mean-padded",
       "one-cycle",
       "given",
       1e-4,
       0,
       0.1,
       0.1},
      {"nystromformer",
       "image",
       small,
       {1024, 1024, 256, 35000, 175, 175},
       "mean-padded",
       "one-cycle",
       "tenth",
       1e-4,
       0,
       0.1,
       0.1},
      {"nystromformer",
       "pathfinder",
       small,
       {1024, 1024, 256, 62400, 312, 312},
       "mean-padded",
       "one-cycle",
       "given",
       1e-4,
       0,
       0.1,
       0.1},
      {"lra",
       "text",
       {256, 256, 4, 4, 1024},
       {1000, 1024, 32, 20000, 8000, 100},
       "cls-vector",
       "rsqrt",
       "tenth",
       0.05,
       0.1,
       0.1,
       0.1},
      {"lra",
       "retrieval",
       {128, 128, 4, 4, 512},
       {4000, 4096, 32, 5000, 8000, 100},
       "cls-vector",
       "rsqrt",
       "given",
       0.05,
       0.1,
       0.1,
       0.1},
      {"lra",
       "image",
       {128, 64, 8, 1, 128},
       {1024, 1024, 256, 35000, 175, 175},
       "cls-vector",
       "cosine",
       "tenth",
       5e-4,
       0,
       0.3,
       0.2},
      {"lra",
       "pathfinder",
       {32, 16, 4, 4, 32},
       {1024, 1024, 512, 62400, 312, 312},
       "mean",
       "cosine",
       "given",
       1e-3,
       0,
       0.2,
       0.1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.recipe) + " " + row.task);
    const std::unique_ptr<Task> task = make_task("task", row.task);
    Recipe r = load_recipe(row.recipe, task->facts());
    resolve_recipe(r, task->facts());
    EXPECT_EQ(std::vector<int64_t>({r.dim, r.qkv_dim, r.heads, r.layers, r.hidden}), row.sizes);
    EXPECT_EQ(std::vector<int64_t>({r.max_length, r.padded_length, r.batch_size, r.steps, r.warmup, r.eval_every}),
              row.run);
    EXPECT_EQ(r.pooling, row.pooling);
    EXPECT_EQ(r.schedule, row.schedule);
    EXPECT_EQ(r.validation, row.validation);
    EXPECT_EQ(r.learning_rate, row.learning_rate);
    EXPECT_EQ(r.weight_decay, row.weight_decay);
    EXPECT_EQ(r.dropout, row.dropout);
    EXPECT_EQ(r.attention_dropout, row.attention_dropout);
    if (std::string(row.task) == "retrieval") {
      EXPECT_EQ(*r.pair_head, std::string(row.recipe) == "lra" ? "two" : "four");
    }
    if (task->facts().pictures) {
      EXPECT_EQ(*r.pixel_tokens, "raw");
    }
    EXPECT_EQ(r.positions, std::string(row.recipe) == "nystromformer" || std::string(row.task) == "image"
                               ? "learned"
                               : "sinusoidal");
  }
}

TEST(Recipe, QuickExistsForEveryTaskAndSaysWhatToExpect) {
  for (const std::string& name : task_names()) {
    const std::unique_ptr<Task> task = make_task("task", name);
    Recipe r = load_recipe("quick", task->facts());
    EXPECT_NO_THROW(resolve_recipe(r, task->facts())) << name;
    EXPECT_EQ(r.eval_examples, 500) << name;
    EXPECT_EQ(r.generated, name == "pathfinder" ? 20000 : 0) << name;
    const bool chance = r.note.find("expect chance") != std::string::npos;
    EXPECT_EQ(chance, name == "pathfinder" || name == "retrieval") << name;
    EXPECT_EQ(load_recipe("nystromformer", task->facts()).note, "");
  }
}

TEST(Recipe, BuiltInFilesSayEveryFieldOfEveryTask) {
  for (const auto& [name, text] : recipe_files()) {
    const Json json = Json::parse(text);
    if (json.contains("base")) continue;
    for (const auto& [task, fields] : json.at("tasks").items()) {
      for (const std::string& field : field_names<Recipe>()) {
        EXPECT_TRUE(fields.contains(field) || json.at("all").contains(field)) << name << " " << task << " " << field;
      }
    }
    EXPECT_EQ(json.at("tasks").size(), 5u) << name;
  }
  EXPECT_EQ(recipe_names().front(), "nystromformer");
  EXPECT_EQ(recipe_names().size(), 3u);
}

TEST(Recipe, EveryBuiltInRecipeOfEveryTaskFitsTogether) {
  const auto facts = [](const char* name, bool pair, bool pictures) {
    return TaskFacts{.name = name, .pair = pair, .pictures = pictures, .validations = {"given", "tenth"}};
  };
  for (const TaskFacts& task :
       {facts("listops", false, false), facts("text", false, false), facts("retrieval", true, false),
        facts("image", false, true), facts("pathfinder", false, true)}) {
    for (const char* name : {"nystromformer", "lra"}) {
      Recipe recipe = load_recipe(name, task);
      EXPECT_NO_THROW(resolve_recipe(recipe, task)) << task.name << " " << name;
      EXPECT_NO_THROW(model_config(recipe, task, "softmax").validate()) << task.name << " " << name;
    }
  }
}

struct Scaled {
  int64_t steps, warmup, eval_every;
};

TEST(Recipe, StepsAloneScaleWarmupAndEvaluation) {
  // w = 1000, e = 50, S0 = 5000.
  for (const Scaled& want : {Scaled{500, 100, 50},
                             {100, 20, 10},
                             {10, 2, 1},
                             {7, 2, 1},
                             {3, 2, 1},
                             {2, 0, 1},
                             {1, 0, 1},
                             {10000, 2000, 1000},
                             {5000, 1000, 500},
                             {73, 15, 8},
                             {4999, 1000, 500}}) {
    Recipe recipe = load_recipe("nystromformer", listops());
    const std::string said = scale_steps(recipe, want.steps, false, false);
    EXPECT_EQ(recipe.steps, want.steps);
    EXPECT_EQ(recipe.warmup, want.warmup) << want.steps;
    EXPECT_EQ(recipe.eval_every, want.eval_every) << want.steps;
    EXPECT_NE(said.find("warm-up"), std::string::npos);
    EXPECT_NO_THROW(resolve_recipe(recipe, listops())) << want.steps;
  }
}

TEST(Recipe, FixedFieldsAreNotScaled) {
  Recipe recipe = load_recipe("nystromformer", listops());
  recipe.warmup = 3;
  scale_steps(recipe, 100, true, false);
  EXPECT_EQ(recipe.warmup, 3);
  EXPECT_EQ(recipe.eval_every, 10);
  recipe = load_recipe("nystromformer", listops());
  recipe.eval_every = 0;
  EXPECT_EQ(scale_steps(recipe, 100, true, false), "") << "0 stays 0, and nothing is said";
  EXPECT_EQ(recipe.eval_every, 0);
}

std::string refusal(const std::function<void(Recipe&)>& change) {
  Recipe recipe = load_recipe("nystromformer", listops());
  change(recipe);
  try {
    resolve_recipe(recipe, listops());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Recipe, WhatDoesNotFitTogetherIsRefused) {
  EXPECT_EQ(refusal([](Recipe& r) { r.warmup = 5000; }), "warmup: 5000 is not below steps (5000); want at most 4999");
  EXPECT_EQ(refusal([](Recipe& r) { r.warmup = 4999; }), "");
  EXPECT_EQ(refusal([](Recipe& r) { r.heads = 3; }), "heads: 3 heads do not divide the width 64 of the model (dim)");
  EXPECT_NE(refusal([](Recipe& r) { r.padded_length = 1999; }), "");
  EXPECT_NE(refusal([](Recipe& r) { r.validation = "test"; }), "");
  EXPECT_NE(refusal([](Recipe& r) { r.pixel_tokens = "raw"; }), "");
  EXPECT_NE(refusal([](Recipe& r) { r.pair_head = "four"; }), "");
  EXPECT_EQ(refusal([](Recipe& r) { r.schedule = "rsqrt", r.warmup = 0; }), "");
  EXPECT_EQ(refusal([](Recipe& r) { r.schedule = "rsqrt", r.warmup = 8000; }), "") << "warm-up beyond the steps";
}

TEST(Recipe, PaddedLengthFollowsTheLimit) {
  for (const auto& [length, pooling, padded] : {std::tuple{1000, "mean-padded", 1024},
                                                {2048, "mean-padded", 2048},
                                                {2048, "cls", 4096},
                                                {2048, "cls-vector", 2048},
                                                {1, "mean", 1}}) {
    Recipe recipe = load_recipe("nystromformer", listops());
    recipe.max_length = length;
    recipe.pooling = pooling;
    resolve_recipe(recipe, listops());
    EXPECT_EQ(recipe.padded_length, padded) << length << " " << pooling;
  }
}

TEST(Recipe, FilesBuildOnABase) {
  TemporaryFolder folder;
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "mine.json") << text;
    return (folder / "mine.json").string();
  };
  const Recipe recipe = load_recipe(write(R"({"base": "quick", "batch-size": 8, "dropout": 0})"), listops());
  EXPECT_EQ(recipe.name, "mine");
  EXPECT_EQ(recipe.batch_size, 8);
  EXPECT_EQ(recipe.dropout, 0.0);
  EXPECT_EQ(recipe.test_examples, 500);
  for (const char* bad : {R"({"batch_size": 8})", R"({"base": "quick", "batchsize": 8})", R"({"base": "best"})",
                          R"({"base": "quick", "steps": 0})", R"({"base": "quick", "steps": "8"})", "[]"}) {
    EXPECT_THROW(load_recipe(write(bad), listops()), UsageError) << bad;
  }
  EXPECT_THROW(load_recipe(write("{"), listops()), InputError);
  EXPECT_THROW(load_recipe((folder / "other.json").string(), listops()), InputError);
  EXPECT_THROW(load_recipe("nystroemformer", listops()), UsageError);
}

TEST(Recipe, JsonAndModelRoundTrip) {
  const Recipe recipe = resolved("lra");
  EXPECT_EQ(recipe_to_json(recipe_from_json(recipe_to_json(recipe), "x")), recipe_to_json(recipe));
  const ModelConfig model = model_config(recipe, listops(), "softmax");
  Recipe other = resolved("nystromformer");
  set_model_fields(other, model);
  EXPECT_EQ(model_config(other, listops(), "softmax"), model);
  for (const std::string& name : field_names<Recipe>()) {
    if (is_model_field(name)) {
      EXPECT_EQ(get_field(other, name), get_field(recipe, name)) << name;
    }
  }
}

}  // namespace
}  // namespace lra
