// How far a run has come, as state.json keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/util/json.h"
#include "results/record.h"

namespace lra {

// What is counted over all sittings of a run; kept in state.json.
struct RunCounters {
  int64_t step = 0;        // updates done
  bool evaluated = false;  // the evaluation due at this step was done
  double train_seconds = 0.0, evaluation_seconds = 0.0;
  int64_t evaluated_examples = 0, tokens = 0;
  double flops = 0.0;
  std::string started;
  int64_t resumed = 0;
  std::optional<CheckpointMetrics> best, last;  // without test figures
  std::vector<EvaluationRecord> history;
};

Json counters_to_json(const RunCounters& counters);
RunCounters counters_from_json(const Json& json, const std::string& where);

}  // namespace lra
