// The command line of a task program. One list of fields (RunOptions, and Recipe for what --set changes) makes the
// option table, --help and the parser.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/util/fields.h"
#include "tasks/task.h"

namespace lra {

inline constexpr int64_t kPictureSizes[] = {32, 64, 128, 256};  // of --size

struct RunOptions {
  std::string data, attention = "softmax", recipe = "nystromformer";
  int64_t seed = 0;
  std::string out, init, evaluate, split = "test", order = "shuffled", backend = "cpu", precision = "float32";
  bool resume = false, force = false, strict = false;
  int64_t limit_train = 0, limit_eval = 0, eval_batch_size = 32;
  int64_t threads = 0;  // 0: not given
  int64_t log_every = 50;
  std::string progress = "auto";
  bool norms = false;
  int64_t maps = 0;   // test rows whose attention is drawn
  int64_t size = 32;  // these two: Pathfinder
  std::string level = "14";
  double checkpoint_every = 60.0;
  std::string max_time;

  template <class Self, class Visit>
  static void visit_fields(Self& self, Visit&& visit);
};

// A recipe field that the command line changes.
struct RecipeChange {
  std::string key;    // snake_case
  std::string text;   // the new value
  std::string where;  // "--steps", "--set steps": for messages
};

struct CommandLine {
  RunOptions options;
  std::set<std::string> given;        // names of RunOptions fields that were given
  std::vector<RecipeChange> changes;  // in their order; the last of a key wins
  bool help = false, version = false;
  std::vector<std::string> words;  // argv as it was

  bool has(const std::string& name) const { return given.contains(name); }
};

// UsageError naming the option at fault. Values are checked alone, not yet against each other.
CommandLine parse_command_line(const std::string& program, const TaskFacts& task, int argc, const char* const* argv);

std::string help_text(const std::string& program, const TaskFacts& task);

// What a field is called as an option: "batch_size" becomes "batch-size".
std::string option_name(std::string field);

// "90", "90s", "10m", "1.5h", "1d12h" in seconds; UsageError naming the option.
double parse_duration(const std::string& where, const std::string& text);

template <class Self, class Visit>
void RunOptions::visit_fields(Self& self, Visit&& visit) {
  constexpr double kRows = 1e9;
  const std::string task = "Task", run = "Run", training = "Training", evaluation = "Evaluation",
                    machine = "Machine and output";
  visit(self.data, Field{.name = "data", .group = task, .value_name = "PATH"});
  visit(self.attention, Field{.name = "attention",
                              .help = "name, or name:key=value,…; list prints all with their options",
                              .group = task,
                              .value_name = "SPEC"});
  visit(self.recipe, Field{.name = "recipe",
                           .help = "nystromformer, lra, quick, or a JSON file {\"base\": NAME, \"key\": value, …}",
                           .group = task,
                           .value_name = "NAME|FILE"});
  visit(self.size, Field{.name = "size",
                         .help = "side of the pictures: 32, 64, 128 or 256; max_length follows it",
                         .group = task,
                         .value_name = "N"});
  visit(self.level, Field{.name = "level",
                          .help = "contours of baseline (6), 9 or 14 paddles",
                          .choices = {"baseline", "9", "14"},
                          .group = task,
                          .value_name = "WORD"});
  visit(self.seed, Field{.name = "seed",
                         .help = "of initial weights, order and dropout",
                         .least = 0,
                         .group = task,
                         .value_name = "N"});
  visit(self.limit_train, Field{.name = "limit_train",
                                .help = "first N training rows only, 0 = all",
                                .least = 0,
                                .most = kRows,
                                .group = task,
                                .value_name = "N"});
  visit(self.limit_eval, Field{.name = "limit_eval",
                               .help = "first N rows of validation and of test, always, 0 = all",
                               .least = 0,
                               .most = kRows,
                               .group = task,
                               .value_name = "N"});
  visit(self.strict, Field{.name = "strict", .help = "bad rows and files are errors", .group = task});
  visit(self.out, Field{.name = "out", .group = run, .value_name = "DIR"});
  visit(self.resume, Field{.name = "resume",
                           .help = "go on from the folder's last checkpoint, with the options it was started with",
                           .group = run});
  visit(self.force, Field{.name = "force", .help = "overwrite the run that is in the folder", .group = run});
  visit(self.checkpoint_every, Field{.name = "checkpoint_every",
                                     .help = "seconds between checkpoints, 0 = at every step",
                                     .least = 0,
                                     .most = 1e9,
                                     .group = run,
                                     .value_name = "SECONDS"});
  visit(self.max_time, Field{.name = "max_time",
                             .help = "save and end with exit code 130 after this time (90, 90s, 10m, 1.5h, 1d12h; "
                                     "default: no limit)",
                             .group = run,
                             .value_name = "DURATION"});
  visit(self.init, Field{.name = "init",
                         .help = "start from the weights of a safetensors file (default: weights drawn by --seed)",
                         .group = training,
                         .value_name = "FILE"});
  visit(self.order, Field{.name = "order",
                          .help = "of training rows: shuffled or sequential",
                          .choices = {"shuffled", "sequential"},
                          .group = training,
                          .value_name = "WORD"});
  visit(self.norms, Field{.name = "norms",
                          .help = "norms of attention at every evaluation, over 32 validation rows, into norms.jsonl",
                          .group = evaluation});
  visit(self.maps, Field{.name = "maps",
                         .help = "draw the attention of this many test rows, evenly spread, at the end, into maps/",
                         .least = 0,
                         .most = kRows,
                         .group = evaluation,
                         .value_name = "N"});
  visit(self.evaluate, Field{.name = "evaluate",
                             .help = "no training: evaluate this checkpoint, whose file says model and attention, and "
                                     "whose run's folder the data that is not given (default: none, train)",
                             .group = evaluation,
                             .value_name = "FILE"});
  visit(self.split, Field{.name = "split",
                          .help = "what --evaluate uses: test, validation or train",
                          .choices = {"test", "validation", "train"},
                          .group = evaluation,
                          .value_name = "WORD"});
  visit(self.eval_batch_size, Field{.name = "eval_batch_size",
                                    .help = "examples at once in evaluation; no effect on results",
                                    .least = 1,
                                    .most = 1048576,
                                    .group = evaluation,
                                    .value_name = "N"});
  visit(self.backend, Field{.name = "backend",
                            .help = "cpu or cuda",
                            .choices = {"cpu", "cuda"},
                            .group = machine,
                            .value_name = "WORD"});
  visit(self.precision,
        Field{.name = "precision",
              .help = "of products: float32; bfloat16 with float32 sums (AVX-512 BF16, CUDA); tf32 (CUDA)",
              .choices = {"float32", "bfloat16", "tf32"},
              .group = machine,
              .value_name = "WORD"});
  visit(self.threads, Field{.name = "threads", .least = 1, .most = 4096, .group = machine, .value_name = "N"});
  visit(self.log_every, Field{.name = "log_every",
                              .help = "steps between training lines in metrics.jsonl",
                              .least = 1,
                              .most = 1e12,
                              .group = machine,
                              .value_name = "N"});
  visit(self.progress, Field{.name = "progress",
                             .help = "auto, bar, plain or none",
                             .choices = {"auto", "bar", "plain", "none"},
                             .group = machine,
                             .value_name = "WORD"});
}

}  // namespace lra
