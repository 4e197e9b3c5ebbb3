#include "tasks/suite/suite_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cxxopts.hpp>

#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "lib/util/fields.h"
#include "tasks/all_tasks.h"

namespace lra {

namespace {

constexpr int kSlurmThreads = 8;

constexpr const char* kExamples = R"(
Any other option (--steps, --norms, --limit-eval, --set KEY=VALUE …) goes to the training programs of all cells;
lra-listops --help lists them.

A cell is a run folder, OUT/<task>/<recipe>/<attention>/seed-<n>. What is done is not done again: after an interrupt, a
crash or a change of the grid the same command goes on. Exit codes: 0 all done (or left to another
process that runs them), 1 a cell failed or diverged, 2 the command line, 130 interrupted after saving.

Examples:
  Three attentions on all tasks in some twenty minutes, then the comparison:
    lra-suite --grid quick-demo --data ~/lra-data
    lra-compare runs
  Softmax against cubic attention on two tasks, five seeds, four runs at a time; from another terminal a look at it:
    lra-suite --tasks text,image --data ~/lra-data --attention softmax --attention polynomial:power=3,scale=16 \
      --seeds 0-4 --jobs 4 --out runs/cubic
    lra-suite --tasks text,image --data ~/lra-data --attention softmax --attention polynomial:power=3,scale=16 \
      --seeds 0-4 --out runs/cubic --status
  The same on a cluster:
    lra-suite --grid paper-powers --data /shared/lra-data --launcher slurm --threads 16 --sbatch '--time=12:00:00'
)";

cxxopts::Options option_table() {
  const auto text = [] { return cxxopts::value<std::string>(); };
  cxxopts::Options table("lra-suite",
                         "Trains a grid of tasks x attentions x seeds, each cell in a run folder of its own.\n");
  table.set_width(110);
  table.custom_help("[OPTION...]");
  table.allow_unrecognised_options();
  table.add_options("Grid")(
      "grid",
      fmt::format("{}, or a JSON file (docs/interfaces.md); the options below change it (default: none)",
                  fmt::join(grid_names(), ", ")),
      text(), "NAME|FILE")("tasks", "all, or names between commas (default: the grid's, else all)", text(), "LIST")(
      "attention", "name, or name:key=value,…; repeatable; all = every variant (default: the grid's)", text(), "SPEC")(
      "seeds", "such as 0-4 or 0,2,5-7 (default: the grid's, else 0)", text(), "LIST")(
      "recipe", "nystromformer, lra, quick, quick-demo or a JSON file (default: the grid's, else nystromformer)",
      text(), "NAME|FILE")(
      "data",
      "folder under which the data of all tasks is looked for (listops and pathfinder generate theirs where it holds "
      "none); or of one task; repeatable (default: none)",
      text(), "ROOT|TASK=PATH");
  table.add_options("Run")("out", "folder of the run folders", text()->default_value(kRunsFolder), "DIR")(
      "jobs", "cells at a time, which share the threads (default: 1; with slurm as many as it gives)", text(), "N")(
      "threads",
      fmt::format("of all jobs together (default: as many as this process may use, here {}); with slurm of each cell "
                  "(default: {})",
                  default_threads(), kSlurmThreads),
      text(), "N")("launcher", "local, or slurm: submit the cells as a job array, which resumes and requeues",
                   text()->default_value("local"), "WORD")(
      "sbatch", "options for sbatch, such as '--partition=cpu --time=8:00:00' (default: none)", text(), "WORDS")(
      "progress", "auto, bar, plain or none", text()->default_value("auto"), "WORD")(
      "dry-run", "print the plan with every cell and its time, and stop (default: false)")(
      "status", "print what the cells' folders say, whoever runs them, and stop (default: false)");
  table.add_options("Help")("h,help", "this text")("version", "version, commit and libraries");
  return table;
}

int parse_count(const std::string& where, const std::string& text, double most) {
  int64_t value = 0;
  parse_field(Field{.name = where, .least = 1, .most = most}, where, text, value);
  return static_cast<int>(value);
}

void add_data(SuiteData& data, const std::string& text) {
  if (text.empty()) throw UsageError("--data: the value is empty; want ROOT or TASK=PATH");
  const size_t equals = text.find('=');
  const std::string task = text.substr(0, equals);
  const auto& names = task_names();
  if (equals != std::string::npos && std::find(names.begin(), names.end(), task) != names.end()) {
    data.paths[task] = text.substr(equals + 1);
    if (data.paths[task].empty()) throw UsageError("--data {}: the path is missing", text);
    return;
  }
  if (data.root) throw UsageError("--data {}: {} is the root already; want TASK=PATH for one task", text, *data.root);
  data.root = text;
}

// What stands on the command line, by option; cxxopts itself would cut specs at their commas.
struct Words {
  std::map<std::string, std::string> last;
  std::vector<std::string> attentions, data;
};

Words words_of(const cxxopts::ParseResult& result) {
  Words words;
  for (const cxxopts::KeyValue& argument : result.arguments()) {
    if (argument.key() == "attention") {
      words.attentions.push_back(argument.value());
    } else if (argument.key() == "data") {
      words.data.push_back(argument.value());
    } else {
      words.last[argument.key()] = argument.value();
    }
  }
  return words;
}

}  // namespace

SuiteOptions parse_suite_options(int argc, const char* const* argv) {
  SuiteOptions options;
  cxxopts::Options table = option_table();
  const cxxopts::ParseResult result = table.parse(argc, argv);
  options.help = result.count("help") > 0;
  options.version = result.count("version") > 0;
  if (options.help || options.version) return options;

  const Words words = words_of(result);
  const auto given = [&](const char* name) {
    const auto at = words.last.find(name);
    return at == words.last.end() ? nullptr : &at->second;
  };
  if (const auto* grid = given("grid")) options.grid = load_grid(*grid);
  if (const auto* tasks = given("tasks")) options.grid.tasks = parse_tasks("--tasks", *tasks);
  if (const auto* seeds = given("seeds")) options.grid.seeds = parse_seeds("--seeds", *seeds);
  if (const auto* recipe = given("recipe")) options.grid.recipe = *recipe;
  if (!words.attentions.empty()) options.grid.attentions = parse_attentions(words.attentions);
  if (options.grid.attentions.empty()) throw UsageError("want --grid NAME or --attention SPEC (see lra-suite --help)");
  if (options.grid.tasks.empty()) options.grid.tasks = task_names();
  for (const std::string& text : words.data) add_data(options.data, text);
  for (const std::string& word : result.unmatched()) options.grid.words.push_back(word);

  options.out = result["out"].as<std::string>();
  if (options.out.empty()) throw UsageError("--out: the value is empty");
  const std::string launcher = result["launcher"].as<std::string>();
  if (launcher != "local" && launcher != "slurm") throw UsageError("--launcher {}: want local or slurm", launcher);
  options.slurm = launcher == "slurm";
  options.jobs = options.slurm ? 0 : 1;
  if (const auto* jobs = given("jobs")) options.jobs = parse_count("--jobs", *jobs, 4096);
  options.threads = options.slurm ? kSlurmThreads : default_threads();
  if (const auto* threads = given("threads")) options.threads = parse_count("--threads", *threads, 4096);
  if (!options.slurm && options.jobs > options.threads) {
    throw UsageError("--jobs {}: more than the {} threads there are", options.jobs, options.threads);
  }
  if (const auto* words = given("sbatch")) options.sbatch = *words;
  if (!options.slurm && !options.sbatch.empty()) throw UsageError("--sbatch: only with --launcher slurm");
  options.progress = progress_mode(result["progress"].as<std::string>());
  options.dry_run = result.count("dry-run") > 0;
  options.status = result.count("status") > 0;
  if (options.dry_run && options.status) throw UsageError("--dry-run and --status: want one of the two");
  return options;
}

std::string suite_help() { return option_table().help({"Grid", "Run", "Help"}) + kExamples; }

}  // namespace lra
