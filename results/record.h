// The record of a run, result.json: everything needed to judge and to repeat it. Its JSON Schema is
// results/schema/lra-result-1.schema.json. Accuracies and shares are fractions 0-1, times seconds, sizes bytes.
// Numbers that are unknown or not finite are NaN here and null in the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lib/util/json.h"

namespace lra {

inline constexpr const char* kResultSchema = "lra-result/1";
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

enum class RunStatus { kRunning, kCompleted, kInterrupted, kDiverged, kFailed };
const char* status_name(RunStatus status);  // "running", "completed", …

struct TaskRecord {
  std::string name;
  int64_t classes = 0, vocabulary = 0, max_length = 0, padded_length = 0;
};

struct AttentionRecord {
  std::string spec, name;         // canonical
  Json options = Json::object();  // all of them, typed
  std::string form_train, form_evaluate;
  bool dropout_applies = true;
};

struct ModelRecord {
  int64_t parameters = 0;  // all that are trained or fixed, the position table included
  int64_t position_parameters = 0;
};

struct SkippedRecord {
  std::string reason;
  int64_t count = 0;
  std::string first;
};

struct SplitRecord {
  int64_t examples = 0;
  std::string hash;
  int64_t length_min = 0, length_median = 0, length_p95 = 0, length_max = 0;
  double truncated_share = 0.0, majority_share = 0.0;
  std::optional<int64_t> limited_to;
  std::vector<SkippedRecord> skipped;
  std::optional<int64_t> also_in_train;  // test only
};

struct DataRecord {
  std::string source;
  std::optional<std::string> cache;
  std::optional<SplitRecord> train, validation, test;  // those that were read
};

struct ProtocolRecord {
  std::string validation, selection, order;
};

// Of one checkpoint. Evaluations of a checkpoint file (--evaluate) know neither step nor the other splits.
struct CheckpointMetrics {
  std::optional<int64_t> step = {};
  double validation_accuracy = kUnknown, validation_loss = kUnknown;
  double test_accuracy = kUnknown, test_loss = kUnknown;
  std::optional<int64_t> test_examples = {};
  std::vector<std::vector<int64_t>> test_confusion = {};  // [label][predicted]; empty: not tested yet
};

struct EvaluationRecord {
  std::string split;
  std::optional<int64_t> step;
  double loss = kUnknown, accuracy = kUnknown;
  int64_t examples = 0;
};

struct SpeedRecord {
  double train_seconds = 0.0, evaluation_seconds = 0.0;
  double samples_per_second = kUnknown, tokens_per_second = kUnknown, eval_samples_per_second = kUnknown;
  double flops_per_sample = kUnknown, achieved_gflops = kUnknown;
  int64_t peak_rss_bytes = 0;
};

struct EnvironmentRecord {
  std::string version, commit;
  bool dirty = false;
  std::string compiler, build, onednn, tbb, cpu, instruction_set;
  int64_t threads = 1, ranks = 1;
  std::string backend = "cpu";
  std::optional<std::string> gpu;
  std::string precision = "float32";
};

struct Record {
  RunStatus status = RunStatus::kRunning;
  std::optional<std::string> error;
  TaskRecord task;
  AttentionRecord attention;
  Json recipe = Json::object();  // "name" and every field
  std::optional<int64_t> seed;
  ModelRecord model;
  DataRecord data;
  ProtocolRecord protocol;
  std::optional<CheckpointMetrics> best, last;
  std::vector<EvaluationRecord> history;
  Json norms = Json::array();
  SpeedRecord speed;
  EnvironmentRecord environment;
  std::vector<std::string> command;
  std::string started;  // UTC, "2026-11-29T13:00:00Z"
  std::optional<std::string> finished;
  int64_t resumed = 0;  // sittings after the first
};

// The originals' protocol of Text: the test split chooses the checkpoint. Said wherever such an accuracy stands.
bool selected_on_test(const Json& recipe);
inline constexpr const char* kSelectedOnTest = "validation=test: selected on the test split";

// Of --evaluate: the steps of the training are not known to a checkpoint. Not so of a run that failed before its data
// was read.
bool is_evaluation(const Record& record);

Json record_to_json(const Record& record);
// InputError "<where>: …" naming the key that is missing or of the wrong type.
Record record_from_json(const Json& json, const std::string& where);

// Written beside and renamed. InputError when it can't be.
void write_record(const std::filesystem::path& path, const Record& record);
// InputError naming the file and what is wrong with it.
Record read_record(const std::filesystem::path& path);

Json evaluation_to_json(const EvaluationRecord& evaluation);
EvaluationRecord evaluation_from_json(const Json& json, const std::string& where);

std::string utc_now();  // "2026-11-29T13:00:00Z"

}  // namespace lra
