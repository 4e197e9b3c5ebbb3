// Loss, accuracy and predictions over the first rows of a split, dropout off, in a fixed order of summation.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/device/batch_model.h"
#include "lib/model/classifier.h"

namespace lra {

struct Prediction {
  int64_t index;
  int label, predicted;
  double probability;  // of the label
};

struct EvaluationResult {
  int64_t examples = 0;
  double loss = 0.0, accuracy = 0.0;
  std::vector<std::vector<int64_t>> confusion;  // [label][predicted]
  int64_t tokens = 0;
};

class Ranks;

struct EvaluationSettings {
  int64_t limit = 0;                                     // first rows only; 0 = all
  int batch_size = 32;                                   // no effect on the result
  std::function<bool()> stop;                            // polled between batches; true ends early (throws Interrupted)
  std::function<void(const Prediction&)> on_prediction;  // called in order of rows
  std::function<void(int64_t done, int64_t total)> on_progress;
  // Which share the rows of a batch; null: this process has all. Rank 0 calls begin_task first (lib/training/follow.h),
  // the callbacks and the result are its.
  const Ranks* ranks = nullptr;
  BatchModel* device = nullptr;  // where this process's rows are computed; null: here
};

struct Interrupted {};

EvaluationResult evaluate(const Classifier& model, const ExampleSource& data, const EvaluationSettings& settings);

}  // namespace lra
