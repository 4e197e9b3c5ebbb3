// What lra-suite runs: tasks x attentions x seeds, and values of one more option where it is swept, all trained by one
// recipe. Written as options of the command line or as a JSON file:
//
//   {"about": "one line", "tasks": "all", "attentions": ["softmax", "polynomial:power=3,scale=16"], "seeds": "0-2",
//    "recipe": "quick", "options": {"norms": true, "steps": 100}, "task_options": {"text": {"max_length": 512}},
//    "sweep": {"max_length": [256, 512]}}
//
// Only tasks and attentions are required. Options are those of the task programs and fields of the recipe; where a name
// is both ("init") it is the option's, and "set": "init=lra" changes the field.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lra {

struct Grid {
  std::string name;  // of the built-in grid or of the file, "" for one made of options
  std::string about;
  std::vector<std::string> tasks, attentions;  // attentions: canonical specs
  std::vector<int64_t> seeds = {0};
  std::string recipe = "nystromformer";
  // Words of a command line ("--steps=100"), the later ones win: for every cell, for those of a task, for those of a
  // value that is swept, and of the suite's own command line.
  std::vector<std::string> options;
  std::map<std::string, std::vector<std::string>> task_options;
  std::string sweep_option;  // "max-length"; "" where nothing is swept
  struct Value {
    std::string text, word;
  };
  std::vector<Value> sweep_values;
  std::vector<std::string> words;
};

std::vector<std::string> grid_names();  // that are built in

// A built-in grid or, where the word has a '/' or ends in ".json", a file. UsageError naming grid and key, InputError
// on a file that can't be read.
Grid load_grid(const std::string& name_or_file);

// "all" or names between commas, in the order of the benchmark. UsageError with `where`.
std::vector<std::string> parse_tasks(const std::string& where, const std::string& text);
// "0-4", "0,2,5-7": ascending, each once.
std::vector<int64_t> parse_seeds(const std::string& where, const std::string& text);
// Canonical specs, each once; "all" stands for every variant with its default options.
std::vector<std::string> parse_attentions(const std::vector<std::string>& specs);

// Texts of grids/*.json by name.
const std::map<std::string, std::string>& grid_files();

}  // namespace lra
