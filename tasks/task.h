// What the Long Range Arena means by a task: its vocabulary, classes and splits, and where its data comes from. One
// class a task (tasks/listops.h); everything else about running it is common (tasks/run/).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
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
  bool pictures = false;                      // pixel_tokens applies
  std::vector<std::string> validations = {};  // values of the recipe's `validation` that exist here
  std::string data_help = {};                 // what --data takes and what happens without it
};

// Where the data of a run lies. Found before anything is read or written.
struct DataPlace {
  std::filesystem::path path;
  bool generated = false;  // path is a file in the cache folder, made when it is missing
  std::string source;      // as recorded
};

struct DataRequest {
  bool want_train = true, want_validation = true, want_test = true;
  int64_t max_length = 0;            // tokens an example is cut at
  int64_t limit_train = 0;           // first rows only; 0 = all
  int64_t limit_eval = 0;            // of validation and of test
  bool strict = false;               // bad rows are errors
  std::string validation = "given";  // of the recipe: where that split comes from
  std::string pixel_tokens;          // of the recipe, pictures only
  int threads = 1;
};

struct TaskData {
  std::unique_ptr<DataSplit> train, validation, test;  // null: not wanted
};

class Task {
 public:
  virtual ~Task() = default;
  const TaskFacts& facts() const { return facts_; }

  // `data` is what --data says; none: the task's own. UsageError where there is no generator, InputError on a path that
  // is missing or holds no data of this task. Reads next to nothing.
  virtual DataPlace locate(const std::optional<std::filesystem::path>& data) const = 0;
  // InputError naming file and line.
  virtual TaskData read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const = 0;
  // How `validation` is to be described in a record: "given split".
  virtual std::string validation_text(const std::string& validation) const = 0;

 protected:
  explicit Task(TaskFacts facts) : facts_(std::move(facts)) {}

 private:
  TaskFacts facts_;
};

}  // namespace lra
