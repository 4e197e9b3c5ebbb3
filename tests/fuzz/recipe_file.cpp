// Recipe files of users, and the recipe inside a run's state: read, resolved for every task, written and read again.
#include "tasks/recipe.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

void recipe_file(Bytes bytes) {
  const std::filesystem::path path = scratch_file("recipe.json", text_of(bytes));
  for (const TaskFacts& task : task_facts()) {
    accepts([&] {
      Recipe recipe = load_recipe(path.string(), task);
      resolve_recipe(recipe, task);
      const Json json = recipe_to_json(recipe);
      Recipe again;
      require(accepts([&] { again = recipe_from_json(json, "again"); }), "a recipe that was accepted is refused");
      require(dump_json(recipe_to_json(again)) == dump_json(json), "a recipe changes when it is written and read");
      accepts([&] { model_config(recipe, task, "softmax").validate(); });
      scale_steps(again, 7, false, false);
    });
  }
  accepts([&] { recipe_from_json(parse_json(text_of(bytes), "input"), "input"); });
}

}  // namespace lra::fuzz
