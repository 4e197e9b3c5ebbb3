// What the Long Range Arena means by a task: its vocabulary, classes and splits, and where its data comes from. One
// class a task (tasks/listops.h); everything else about running it is common (tasks/run/).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "datasets/example.h"
#include "lib/util/log.h"
#include "lib/util/progress.h"

namespace lra {

struct TaskFacts {
  std::string name = {};   // "listops"
  std::string title = {};  // one line for --help
  int vocabulary = 32, classes = 10;
  bool pair = false;                          // two documents an example
  bool pictures = false;                      // pixel_tokens applies; examples are square, row by row
  bool sized = false;                         // --size and --level choose among data sets (Pathfinder)
  bool generates = false;                     // makes its data where none is named
  std::vector<std::string> validations = {};  // values of the recipe's `validation` that exist here
  std::string data_help = {};                 // what --data takes and what happens without it
};

// What the command line says about where data is.
struct DataChoice {
  std::optional<std::filesystem::path> path = {};  // --data
  int size = 32;                                   // --size and --level, of Pathfinder
  std::string level = "14";                        // baseline, 9 or 14
  int64_t generated_count = 0;                     // Pathfinder: pictures to generate; 0 = 200,000 as in the release
};

// Where the data of a run lies. Found before anything is read or written.
struct DataPlace {
  std::filesystem::path path;
  bool generated = false;  // path is a file in the cache folder, made when it is missing
  std::string source;      // as recorded
  DataChoice choice = {};
};

struct DataRequest {
  bool want_train = true, want_validation = true, want_test = true;
  int64_t max_length = 0;            // tokens an example is cut at
  int64_t limit_train = 0;           // first rows only; 0 = all
  int64_t limit_eval = 0;            // of validation and of test
  bool strict = false;               // bad rows are errors
  std::string validation = "given";  // of the recipe: where that split comes from
  std::string pixel_tokens = {};     // of the recipe, pictures only
  int threads = 1;
};

struct TaskData {
  std::unique_ptr<DataSplit> train, validation, test;  // null: not wanted
};

class Task {
 public:
  virtual ~Task() = default;
  const TaskFacts& facts() const { return facts_; }

  // Without a path: the task's own data. UsageError where there is no generator, InputError on a path that is missing
  // or holds no data of this task. Reads next to nothing.
  virtual DataPlace locate(const DataChoice& choice) const = 0;
  // InputError naming file and line.
  virtual TaskData read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const = 0;
  // How `validation` is to be described in a record: "given split".
  virtual std::string validation_text(const std::string& validation) const = 0;
  // Ids as a person reads them, one line without its end: "[MAX 4 2 ]", or text with escapes. Not for pictures.
  virtual std::string text(std::span<const int32_t> ids) const;

 protected:
  explicit Task(TaskFacts facts) : facts_(std::move(facts)) {}

 private:
  TaskFacts facts_;
};

}  // namespace lra
