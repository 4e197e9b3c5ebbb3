// The parts of a record that do not change while a run goes on.
#pragma once

#include <string>
#include <vector>

#include "datasets/example.h"
#include "lib/model/classifier.h"
#include "results/record.h"
#include "tasks/recipe.h"
#include "tasks/task.h"

namespace lra {

TaskRecord task_record(const ModelConfig& model);
AttentionRecord attention_record(const Classifier& model);
ModelRecord model_record(const Classifier& model);
// `limit`: rows were limited to it, 0 = not. `train`: of a test split, to count the rows it shares with training.
SplitRecord split_record(const DataSplit& split, int64_t limit, const DataSplit* train);
DataRecord data_record(const DataPlace& place, const TaskData& data, int64_t limit_train, int64_t limit_eval);
EnvironmentRecord environment_record(int threads, const std::string& backend, const std::string& precision);

// Lines for a user: rows by split, and what was skipped ("train: 3 rows skipped: unknown token, first …").
std::vector<std::string> data_lines(const DataRecord& data);

}  // namespace lra
