// What rank 0 asks of all ranks, and the loop in which the others answer. A task begins with a message that says what
// it is, then the parameters it is to be done with; no rank keeps anything from one task to the next.
#pragma once

#include <cstdint>
#include <span>

#include "lib/model/classifier.h"
#include "lib/training/ranks.h"
#include "lib/training/trainer.h"

namespace lra {

struct RankTask {
  enum class Kind : int32_t { kTrain, kEvaluate, kEnd } kind = Kind::kEnd;
  int32_t split = 0;       // evaluation: which of the splits
  int32_t batch_size = 0;  // of evaluation
  int64_t limit = 0;       // of evaluation, 0 = all rows
  int64_t step = 0;        // training: steps done before this one
};

// Rank 0: begins a task on all ranks, with these parameters (none with kEnd).
void begin_task(const Ranks& ranks, RankTask task, std::span<const float> parameters);

// The other ranks: do what rank 0 asks until it says kEnd. model and device: the trainer's. splits: as RankTask::split
// counts.
void follow(const Ranks& ranks, Classifier& model, Trainer& trainer, std::span<const ExampleSource* const> splits,
            BatchModel* device);

}  // namespace lra
