// Evaluation depends on the rows alone.
#include "lib/training/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lib/training/threads.h"
#include "tests/support/examples.h"
#include "tests/support/models.h"

namespace lra {
namespace {

class EvaluatorTest : public testing::Test {
 protected:
  EvaluatorTest() : model_(small_config()), examples_(random_examples(small_config(), 103, 8)), source_(examples_) {
    model_.initialise(2);
  }

  Classifier model_;
  std::vector<Example> examples_;
  VectorSource source_;
};

TEST_F(EvaluatorTest, TheBatchSizeHasNoEffect) {
  std::vector<EvaluationResult> results;
  std::vector<std::vector<double>> probabilities;
  for (const int batch_size : {1, 7, 100}) {
    EvaluationSettings settings;
    settings.batch_size = batch_size;
    auto& row = probabilities.emplace_back();
    settings.on_prediction = [&](const Prediction& p) {
      EXPECT_EQ(p.index, static_cast<int64_t>(row.size()));
      EXPECT_EQ(p.label, examples_[static_cast<size_t>(p.index)].label);
      row.push_back(p.probability);
    };
    Threads(3).run([&] { results.push_back(evaluate(model_, source_, settings)); });
    EXPECT_EQ(results.back().loss, results[0].loss);
    EXPECT_EQ(results.back().accuracy, results[0].accuracy);
    EXPECT_EQ(results.back().confusion, results[0].confusion);
    EXPECT_EQ(row, probabilities[0]);
  }
}

TEST_F(EvaluatorTest, IsTheMeanOfSingleExamples) {
  Arena arena;
  double loss = 0.0;
  int64_t correct = 0, tokens = 0;
  for (const Example& example : examples_) {
    const ExampleResult result = model_.evaluate(example, arena);
    loss += result.loss;
    correct += result.predicted == example.label ? 1 : 0;
    tokens += static_cast<int64_t>(example.first.ids.size());
  }
  Threads(2).run([&] {
    const EvaluationResult result = evaluate(model_, source_, {});
    EXPECT_EQ(result.examples, 103);
    EXPECT_EQ(result.loss, loss / 103.0);
    EXPECT_EQ(result.accuracy, static_cast<double>(correct) / 103.0);
    EXPECT_EQ(result.tokens, tokens);
    int64_t counted = 0, diagonal = 0;
    for (size_t label = 0; label < result.confusion.size(); ++label) {
      for (const int64_t count : result.confusion[label]) counted += count;
      diagonal += result.confusion[label][label];
    }
    EXPECT_EQ(counted, 103);
    EXPECT_EQ(diagonal, correct);
  });
}

TEST_F(EvaluatorTest, LimitTakesTheFirstRows) {
  EvaluationSettings settings;
  settings.limit = 10;
  Threads(2).run([&] {
    const EvaluationResult ten = evaluate(model_, source_, settings);
    EXPECT_EQ(ten.examples, 10);
    const VectorSource first(std::vector<Example>(examples_.begin(), examples_.begin() + 10));
    EXPECT_EQ(evaluate(model_, first, {}).loss, ten.loss);
    settings.limit = 1000;
    EXPECT_EQ(evaluate(model_, source_, settings).examples, 103);
  });
}

TEST_F(EvaluatorTest, StopsBetweenBatches) {
  EvaluationSettings settings;
  settings.batch_size = 10;
  int64_t done = 0;
  settings.on_progress = [&](int64_t now, int64_t total) {
    done = now;
    EXPECT_EQ(total, 103);
  };
  settings.stop = [&] { return done >= 20; };
  Threads(2).run([&] { EXPECT_THROW(evaluate(model_, source_, settings), Interrupted); });
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace lra
