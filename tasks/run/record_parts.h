// The parts of a record that do not change while a run goes on.
#pragma once

#include <string>
#include <vector>

#include "datasets/example.h"
#include "lib/device/batch_model.h"
#include "lib/model/classifier.h"
#include "results/record.h"
#include "tasks/recipe.h"
#include "tasks/task.h"

namespace lra {

// How the checkpoint of a training run is chosen, as its record says: records that say it otherwise are not compared.
inline constexpr const char* kSelection = "best validation accuracy, earliest";

TaskRecord task_record(const ModelConfig& model);
// device: of --backend cuda; null where there is none.
AttentionRecord attention_record(const ModelConfig& model, const BatchModel* device = nullptr);
ModelRecord model_record(const Classifier& model);
// The limits: rows were limited to them, 0 = not. Reads every row once.
DataRecord data_record(const DataPlace& place, const TaskData& data, int64_t limit_train, int64_t limit_eval);
// device: of --backend cuda, null where there is none.
EnvironmentRecord environment_record(int threads, const std::string& backend, const std::string& precision,
                                     const BatchModel* device = nullptr);

// Lines for a user: rows by split, and what was skipped ("train: 3 rows skipped: unknown token, first …").
std::vector<std::string> data_lines(const DataRecord& data);

}  // namespace lra
