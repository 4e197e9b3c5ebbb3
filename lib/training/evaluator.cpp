// Evaluation: examples of a batch side by side, results taken in the order of rows, so that the size of batches only
// decides how often progress and interruption are looked at.
#include "lib/training/evaluator.h"

#include <algorithm>

#include "lib/ops/cross_entropy.h"
#include "lib/training/parallel.h"
#include "lib/training/pool.h"
#include "lib/training/task_fork.h"
#include "lib/util/check.h"

namespace lra {
namespace {

struct Row {
  ExampleResult result;
  int label = 0;
  int64_t tokens = 0;
};

}  // namespace

EvaluationResult evaluate(const Classifier& model, const ExampleSource& data, const EvaluationSettings& settings) {
  check(settings.batch_size > 0, "evaluation in batches of {}", settings.batch_size);
  const int64_t total = settings.limit > 0 ? std::min(settings.limit, data.size()) : data.size();
  const auto classes = static_cast<size_t>(model.config().classes);
  EvaluationResult evaluation;
  evaluation.examples = total;
  evaluation.confusion.assign(classes, std::vector<int64_t>(classes, 0));
  int64_t correct = 0;

  Pool<Arena> arenas([] { return std::make_unique<Arena>(); });
  const TaskFork fork;
  std::vector<Row> batch(static_cast<size_t>(std::min<int64_t>(settings.batch_size, total)));
  for (int64_t begin = 0; begin < total; begin += settings.batch_size) {
    if (settings.stop && settings.stop()) throw Interrupted();
    const int64_t end = std::min(begin + settings.batch_size, total);
    parallel_in_order(end - begin, [&](int64_t i) {
      const Example example = data.get(begin + i);
      Row& row = batch[static_cast<size_t>(i)];
      row.label = example.label;
      row.tokens = static_cast<int64_t>(example.first.ids.size() + example.second.ids.size());
      const Pool<Arena>::Loan arena = arenas.borrow();
      arena->reset();
      const Fork* spare = threads_to_spare(i, end - begin) ? &fork : nullptr;
      isolated([&] { row.result = model.evaluate(example, *arena, spare); });
    });
    for (int64_t index = begin; index < end; ++index) {
      const Row& row = batch[static_cast<size_t>(index - begin)];
      evaluation.loss += row.result.loss;
      evaluation.tokens += row.tokens;
      correct += row.result.predicted == row.label ? 1 : 0;
      ++evaluation.confusion[static_cast<size_t>(row.label)][static_cast<size_t>(row.result.predicted)];
      if (settings.on_prediction) {
        settings.on_prediction({index, row.label, row.result.predicted, probability(row.result.logits, row.label)});
      }
    }
    if (settings.on_progress) settings.on_progress(end, total);
  }
  if (total > 0) {
    evaluation.loss /= static_cast<double>(total);
    evaluation.accuracy = static_cast<double>(correct) / static_cast<double>(total);
  }
  return evaluation;
}

}  // namespace lra
