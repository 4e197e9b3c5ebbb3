// Evaluation of a checkpoint without training (--evaluate): model and attention come from the file's metadata.
#pragma once

#include <functional>

#include "lib/util/log.h"
#include "results/record.h"
#include "tasks/run/options.h"
#include "tasks/run/training_run.h"
#include "tasks/task.h"

namespace lra {

// Evaluates and writes predictions-<split>.jsonl, metrics.jsonl, log.txt and result.json. UsageError on options that
// belong to training or contradict the file; Interrupted when circumstances.stop says so.
Record run_evaluation(const Task& task, const CommandLine& line, const RunCircumstances& circumstances, Log& log,
                      std::filesystem::path& folder);

}  // namespace lra
