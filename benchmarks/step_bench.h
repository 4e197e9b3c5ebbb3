// Times whole training or evaluation steps on synthetic examples of full length, with the machine's FMA peak measured
// on the same threads before and after each of them.
#pragma once

#include <memory>
#include <string>

#include "lib/device/batch_model.h"
#include "lib/model/classifier.h"
#include "lib/util/json.h"
#include "lib/util/phases.h"
#include "tasks/recipe.h"

namespace lra {

// A model of the recipe with its trainer, on random examples of full length.
class StepRunner {
 public:
  // recipe: resolved; its max_length is the length of every example, batch_size the examples of a step.
  // device: where steps are computed, of one made for the same recipe and attention; null: the CPU.
  StepRunner(const Recipe& recipe, const TaskFacts& task, const std::string& attention, Precision precision,
             BatchModel* device = nullptr);
  ~StepRunner();

  // One step over the batch; call inside Threads::run.
  void train();
  void evaluate();

  const Classifier& model() const;
  Example example(int64_t number = 0) const;  // one of the batch

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct StepBenchSettings {
  bool training = true;
  std::string attention = "softmax";  // any spec
  int threads = 1;
  double seconds = 3.0;  // of timed steps, at least
  int repeats = 5;       // timed steps, at least
  Precision precision = Precision::kFloat32;
  bool profile = false;  // book the time of the timed steps on phases
  BatchModel* device = nullptr;
};

struct StepBenchResult {
  double ms_per_sample = 0.0, ms_per_sample_min = 0.0;  // median and best over the repeats
  double gflops = 0.0;                                  // of the median
  // Of the CPU; 0 where a device computes.
  double peak_gflops = 0.0;    // median of the peaks beside the steps
  double share_of_peak = 0.0;  // median over the steps of their share of the peak beside them
  double flops_per_sample = 0.0, dense_flops_per_sample = 0.0;
  int64_t peak_rss_bytes = 0;
  int repeats = 0;
  double thread_seconds = 0.0;  // threads * time of the timed steps
  PhaseSeconds phases{};        // of it, all threads; zeros without profile
};

// recipe: as of StepRunner.
StepBenchResult bench_step(const Recipe& recipe, const TaskFacts& task, const StepBenchSettings& settings);

Json to_json(const StepBenchResult& result);

}  // namespace lra
