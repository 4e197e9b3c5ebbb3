// Times whole training or evaluation steps on synthetic examples of full length, with the machine's FMA peak measured
// in the same run on the same threads.
#pragma once

#include "lib/ops/precision.h"
#include "lib/util/json.h"
#include "lib/util/phases.h"
#include "tasks/recipe.h"

namespace lra {

struct StepBenchSettings {
  bool training = true;
  std::string attention = "softmax";  // any spec
  int threads = 1;
  double seconds = 3.0;  // of timed steps, at least
  int repeats = 5;       // timed steps, at least
  Precision precision = Precision::kFloat32;
  bool profile = false;  // book the time of the timed steps on phases
};

struct StepBenchResult {
  double ms_per_sample = 0.0, ms_per_sample_min = 0.0;  // median and best over the repeats
  double gflops = 0.0;                                  // of the median
  double peak_gflops = 0.0, share_of_peak = 0.0;
  double flops_per_sample = 0.0, dense_flops_per_sample = 0.0;
  int64_t peak_rss_bytes = 0;
  int repeats = 0;
  double thread_seconds = 0.0;  // threads * time of the timed steps
  PhaseSeconds phases{};        // of it, all threads; zeros without profile
};

// recipe: resolved; its max_length is the length of every example, batch_size the examples of a step.
StepBenchResult bench_step(const Recipe& recipe, const TaskFacts& task, const StepBenchSettings& settings);

Json to_json(const StepBenchResult& result);

}  // namespace lra
