// Evaluation: examples of a batch side by side, results taken in the order of rows, so that the size of batches only
// decides how often progress and interruption are looked at.
#include "lib/training/evaluator.h"

#include <algorithm>

#include "lib/ops/cross_entropy.h"
#include "lib/training/parallel.h"
#include "lib/training/pool.h"
#include "lib/training/ranks.h"
#include "lib/training/task_fork.h"
#include "lib/util/check.h"

namespace lra {
namespace {

struct Row {
  double loss = 0.0, probability = 0.0;  // probability: of the label
  int32_t label = 0, predicted = 0;
  int64_t tokens = 0;
};

// The rows of a batch, each rank's share by all of its threads, together again at rank 0.
class BatchRows {
 public:
  BatchRows(const Classifier& model, const ExampleSource& data, const Ranks* ranks, BatchModel* device,
            int64_t batch_size)
      : model_(model),
        data_(data),
        ranks_(ranks),
        device_(device),
        count_(ranks == nullptr ? 1 : ranks->count()),
        share_((batch_size + count_ - 1) / count_),
        mine_(static_cast<size_t>(share_)),
        all_(static_cast<size_t>(share_ * count_)) {}

  const Row& operator[](int64_t i) const { return all_[static_cast<size_t>(i)]; }

  void evaluate(int64_t begin, int64_t end) {
    const int64_t first = begin + (ranks_ == nullptr ? 0 : ranks_->rank()) * share_;
    const int64_t count = std::clamp<int64_t>(end - first, 0, share_);
    if (device_ != nullptr) {
      evaluate_on_device(first, count);
    } else {
      evaluate_here(first, count);
    }
    if (ranks_ == nullptr) {
      all_.swap(mine_);
    } else {
      ranks_->gather(std::span<const Row>(mine_), std::span(all_));
    }
  }

 private:
  static Row row_of(const Example& example, const ExampleResult& result) {
    return {result.loss, probability(result.logits, example.label), example.label, result.predicted,
            std::ssize(example.first.ids) + std::ssize(example.second.ids)};
  }

  void evaluate_here(int64_t first, int64_t count) {
    parallel_in_order(count, [&](int64_t i) {
      const Example example = data_.get(first + i);
      const Pool<Arena>::Loan arena = arenas_.borrow();
      arena->reset();
      const Fork* spare = threads_to_spare(i, count) ? &fork_ : nullptr;
      ExampleResult result;
      isolated([&] { result = model_.evaluate(example, *arena, spare); });
      mine_[static_cast<size_t>(i)] = row_of(example, result);
    });
  }

  void evaluate_on_device(int64_t first, int64_t count) {
    std::vector<Example> examples(static_cast<size_t>(count));
    parallel_in_order(count, [&](int64_t i) { examples[static_cast<size_t>(i)] = data_.get(first + i); });
    const std::vector<ExampleResult> results = device_->evaluate(model_.parameters(), examples);
    for (size_t i = 0; i < results.size(); ++i) mine_[i] = row_of(examples[i], results[i]);
  }

  const Classifier& model_;
  const ExampleSource& data_;
  const Ranks* ranks_;
  BatchModel* device_;
  int64_t count_, share_;
  std::vector<Row> mine_, all_;
  Pool<Arena> arenas_{[] { return std::make_unique<Arena>(); }};
  TaskFork fork_;
};

// Whether rank 0 wants to stop.
bool stopped(const EvaluationSettings& settings) {
  const bool leads = settings.ranks == nullptr || settings.ranks->leads();
  uint8_t stop = leads && settings.stop && settings.stop() ? 1 : 0;
  if (settings.ranks != nullptr) settings.ranks->broadcast(std::span(&stop, 1));
  return stop != 0;
}

}  // namespace

EvaluationResult evaluate(const Classifier& model, const ExampleSource& data, const EvaluationSettings& settings) {
  check(settings.batch_size > 0, "evaluation in batches of {}", settings.batch_size);
  const int64_t total = settings.limit > 0 ? std::min(settings.limit, data.size()) : data.size();
  const auto classes = static_cast<size_t>(model.config().classes);
  EvaluationResult evaluation;
  evaluation.examples = total;
  evaluation.confusion.assign(classes, std::vector<int64_t>(classes, 0));
  int64_t correct = 0;

  BatchRows batch(model, data, settings.ranks, settings.device, std::min<int64_t>(settings.batch_size, total));
  const bool leads = settings.ranks == nullptr || settings.ranks->leads();
  for (int64_t begin = 0; begin < total; begin += settings.batch_size) {
    if (stopped(settings)) throw Interrupted();
    const int64_t end = std::min(begin + settings.batch_size, total);
    batch.evaluate(begin, end);
    if (!leads) continue;
    for (int64_t index = begin; index < end; ++index) {
      const Row& row = batch[index - begin];
      evaluation.loss += row.loss;
      evaluation.tokens += row.tokens;
      correct += row.predicted == row.label ? 1 : 0;
      ++evaluation.confusion[static_cast<size_t>(row.label)][static_cast<size_t>(row.predicted)];
      if (settings.on_prediction) settings.on_prediction({index, row.label, row.predicted, row.probability});
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
