#include "lib/training/follow.h"

#include <vector>

#include "lib/training/evaluator.h"

namespace lra {

void begin_task(const Ranks& ranks, RankTask task, std::span<const float> parameters) {
  if (ranks.count() == 1) return;
  ranks.broadcast(std::span(&task, 1));
  if (task.kind == RankTask::Kind::kEnd) return;
  // MPI takes what it only reads as writable.
  ranks.broadcast(std::span(const_cast<float*>(parameters.data()), parameters.size()));
}

void follow(const Ranks& ranks, Classifier& model, Trainer& trainer, std::span<const ExampleSource* const> splits,
            BatchModel* device) {
  for (;;) {
    RankTask task;
    ranks.broadcast(std::span(&task, 1));
    if (task.kind == RankTask::Kind::kEnd) return;
    ranks.broadcast(model.parameters());
    if (task.kind == RankTask::Kind::kTrain) {
      trainer.contribute(task.step);
    } else {
      EvaluationSettings settings;
      settings.limit = task.limit;
      settings.batch_size = task.batch_size;
      settings.ranks = &ranks;
      settings.device = device;
      try {
        evaluate(model, *splits[static_cast<size_t>(task.split)], settings);
      } catch (const Interrupted&) {
        // Rank 0 has stopped it.
      }
    }
  }
}

}  // namespace lra
