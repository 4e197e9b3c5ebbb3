// Training is a function of its settings: any number of threads, any interruption.
#include "lib/training/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/training/threads.h"
#include "tests/support/examples.h"
#include "tests/support/models.h"

namespace lra {
namespace {

TrainerSettings settings_of(int batch_size) {
  TrainerSettings settings;
  settings.schedule = {"one-cycle", 1e-2, 20, 4};
  settings.batch_size = batch_size;
  settings.weight_decay = 0.01;
  settings.seed = 3;
  return settings;
}

struct Outcome {
  std::vector<float> parameters;
  std::vector<double> losses, norms;
  bool operator==(const Outcome&) const = default;
};

Outcome train(const ModelConfig& config, const TrainerSettings& settings, int threads, int steps) {
  Classifier model(config);
  model.initialise(1);
  const VectorSource source(random_examples(config, 29, 4));
  Outcome outcome;
  Threads(threads).run([&] {
    Trainer trainer(model, source, settings);
    for (int step = 0; step < steps; ++step) {
      const StepResult result = trainer.step();
      outcome.losses.push_back(result.loss);
      outcome.norms.push_back(result.gradient_norm);
    }
  });
  outcome.parameters.assign(model.parameters().begin(), model.parameters().end());
  return outcome;
}

std::vector<ModelConfig> models() {
  ModelConfig pair = small_config();
  pair.pair = true;
  ModelConfig vector = small_config();
  vector.pooling = "cls-vector";
  vector.attention = "polynomial:power=3,scale=16";
  ModelConfig fixed = small_config();
  fixed.positions = "sinusoidal";
  fixed.attention_bias = false;
  return {small_config(), pair, vector, fixed};
}

TEST(Trainer, BitEqualForAnyNumberOfThreads) {
  for (const ModelConfig& config : models()) {
    for (const int batch_size : {8, 7}) {
      const Outcome one = train(config, settings_of(batch_size), 1, 5);
      EXPECT_EQ(one, train(config, settings_of(batch_size), 2, 5));
      EXPECT_EQ(one, train(config, settings_of(batch_size), 5, 5));
    }
  }
}

TEST(Trainer, TheSeedChangesTheOutcome) {
  TrainerSettings other = settings_of(8);
  other.seed = 4;
  EXPECT_NE(train(small_config(), settings_of(8), 1, 2), train(small_config(), other, 1, 2));
}

TEST(Trainer, RestoredContinuesBitEqual) {
  const ModelConfig config = small_config();
  const VectorSource source(random_examples(config, 29, 4));
  const Outcome whole = train(config, settings_of(8), 2, 9);
  Classifier first(config), second(config);
  first.initialise(1);
  std::vector<float> parameters, m, v;
  Threads threads(2);
  threads.run([&] {
    Trainer trainer(first, source, settings_of(8));
    for (int step = 0; step < 4; ++step) trainer.step();
    parameters.assign(first.parameters().begin(), first.parameters().end());
    m.assign(trainer.first_moment().begin(), trainer.first_moment().end());
    v.assign(trainer.second_moment().begin(), trainer.second_moment().end());
  });
  threads.run([&] {
    std::ranges::copy(parameters, second.parameters().begin());
    Trainer trainer(second, source, settings_of(8));
    std::ranges::copy(m, trainer.first_moment().begin());
    std::ranges::copy(v, trainer.second_moment().begin());
    trainer.restore(4);
    for (int step = 4; step < 9; ++step) EXPECT_EQ(trainer.step().loss, whole.losses[step]);
  });
  EXPECT_TRUE(std::ranges::equal(second.parameters(), whole.parameters));
}

TEST(Trainer, GradientIsThatOfTheMeanLoss) {
  ModelConfig config = small_config();
  config.dropout = config.attention_dropout = 0.0f;
  const std::vector<Example> examples = random_examples(config, 6, 4);
  const VectorSource source(examples);
  Classifier model(config);
  model.initialise(1);
  std::vector<float> gradients(model.parameters().size());
  Arena arena;
  double loss = 0.0;
  for (const Example& example : examples) loss += model.train(example, 1.0f / 6.0f, {}, gradients, arena).loss / 6.0;
  double norm = 0.0;
  for (const float g : gradients) norm += static_cast<double>(g) * g;
  TrainerSettings settings = settings_of(6);
  settings.shuffled = false;
  Threads(2).run([&] {
    Trainer trainer(model, source, settings);
    const StepResult result = trainer.step();
    EXPECT_NEAR(result.loss, loss, 1e-12);
    EXPECT_NEAR(result.gradient_norm, std::sqrt(norm), 1e-6 * std::sqrt(norm));
    EXPECT_EQ(result.step, 1);
    EXPECT_EQ(trainer.steps_done(), 1);
    EXPECT_EQ(result.learning_rate, schedule_rate(settings.schedule, 0).learning_rate);
  });
}

TEST(Trainer, ClippingBoundsTheUpdateNotTheReportedNorm) {
  TrainerSettings clipped = settings_of(8);
  clipped.clip_norm = 1e-3;
  const Outcome free = train(small_config(), settings_of(8), 1, 1), bound = train(small_config(), clipped, 1, 1);
  EXPECT_EQ(free.norms, bound.norms);
  EXPECT_GT(free.norms[0], 1e-3);
  EXPECT_NE(free.parameters, bound.parameters);
  clipped.clip_norm = 1e6;  // above every norm: no change at all
  EXPECT_EQ(free, train(small_config(), clipped, 1, 1));
}

TEST(Trainer, UpdatesNothingWhenNotFinite) {
  const ModelConfig config = small_config();
  const VectorSource source(random_examples(config, 29, 4));
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Classifier model(config);
    model.initialise(1);
    model.parameters()[static_cast<size_t>(model.layout().at("head_out.bias").offset)] = poison;
    const std::vector<float> before(model.parameters().begin(), model.parameters().end());
    Threads(2).run([&] {
      Trainer trainer(model, source, settings_of(8));
      const StepResult result = trainer.step();
      EXPECT_FALSE(result.finite);
      EXPECT_EQ(result.step, 1);
      EXPECT_EQ(trainer.steps_done(), 0);
      EXPECT_TRUE(std::ranges::all_of(trainer.first_moment(), [](float x) { return x == 0.0f; }));
    });
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_TRUE(model.parameters()[i] == before[i] || std::isnan(before[i]));
    }
  }
}

TEST(Trainer, ErrorsOfTheDataPassThrough) {
  class Broken : public ExampleSource {
    int64_t size() const override { return 100; }
    Example get(int64_t index) const override { throw std::runtime_error("row cannot be read"); }
  };
  const Broken source;
  Classifier model(small_config());
  Threads(2).run([&] {
    Trainer trainer(model, source, settings_of(8));
    EXPECT_THROW(trainer.step(), std::runtime_error);
  });
}

TEST(Trainer, LearnsAnEasyTask) {
  ModelConfig config = small_config();
  config.classes = 2;
  std::vector<Example> examples = random_examples(config, 64, 4);
  for (Example& example : examples) {
    example.label = example.label % 2;
    for (int32_t& id : example.first.ids) id = 1 + 2 * (id % 4) + example.label;
    if (example.first.ids.empty()) example.first = {{1 + example.label}, {0}};
  }
  const VectorSource source(examples);
  Classifier model(config);
  model.initialise(1);
  TrainerSettings settings = settings_of(16);
  settings.schedule = {"one-cycle", 1e-2, 60, 10};
  double first = 0.0, last = 1.0;
  Threads(2).run([&] {
    Trainer trainer(model, source, settings);
    for (int step = 0; step < 60; ++step) {
      last = trainer.step().loss;
      if (step == 0) first = last;
    }
  });
  EXPECT_GT(first, 0.5);
  EXPECT_LT(last, 0.1);
}

}  // namespace
}  // namespace lra
