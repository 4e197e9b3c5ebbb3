// The model on a device against the model on the CPU, dropout and all, and what training on a device must keep.
#include "lib/device/batch_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/device/device.h"
#include "lib/training/evaluator.h"
#include "lib/training/threads.h"
#include "lib/training/trainer.h"
#include "tests/support/compare.h"
#include "tests/support/examples.h"
#include "tests/support/models.h"

namespace lra {
namespace {

constexpr DropoutSource kFirst{{5, 6}, 40};

struct Variant {
  const char* name;
  void (*change)(ModelConfig&);
};

const Variant kVariants[] = {
    {"plain", [](ModelConfig&) {}},
    {"mean", [](ModelConfig& c) { c.pooling = "mean", c.gelu = Gelu::kTanh, c.attention = "polynomial"; }},
    {"cls", [](ModelConfig& c) { c.pooling = "cls", c.attention = "sigmoid:learnable=1"; }},
    {"cls_vector", [](ModelConfig& c) { c.pooling = "cls-vector", c.positions = "sinusoidal"; }},
    {"no_bias", [](ModelConfig& c) { c.attention_bias = false, c.qkv_dim = 8, c.attention = "rela:gate=1"; }},
    {"pair", [](ModelConfig& c) { c.pair = true, c.attention = "softmax+xsa"; }},
    {"pair_two", [](ModelConfig& c) { c.pair = true, c.pair_head = "two", c.attention = "nap"; }},
};

struct Start {
  ModelConfig config = small_config();
  std::unique_ptr<Classifier> model;
  std::vector<Example> examples;

  explicit Start(const Variant& variant = kVariants[0]) {
    config.dropout = 0.2f, config.attention_dropout = 0.3f;
    variant.change(config);
    model = std::make_unique<Classifier>(config);
    model->initialise(3);
    examples = random_examples(config, 6, 1);
    examples[1].first = {};  // no token at all
  }
  std::unique_ptr<BatchModel> on_device(const char* precision = "float32") const {
    std::unique_ptr<BatchModel> device = make_batch_model(config, precision);
    const std::vector<float> zeros(model->parameters().size());
    device->load(model->parameters(), zeros, zeros);
    return device;
  }
};

class OnDevice : public testing::TestWithParam<Variant> {};

TEST_P(OnDevice, AgreesWithTheCpu) {
  const Start start(GetParam());
  const std::unique_ptr<BatchModel> device = start.on_device();
  const std::vector<ExampleResult> trained = device->train(start.examples, 0.25f, kFirst);
  const std::vector<ExampleResult> evaluated = device->evaluate(start.model->parameters(), start.examples);
  std::vector<float> gradients(start.model->parameters().size());
  Arena arena;
  const auto expect_result = [&](const ExampleResult& got, const ExampleResult& wanted, const std::string& what) {
    const double limit = tolerance(NumberType::kFloat32, 64, 1.0);
    expect_close(got.logits, wanted.logits, limit, what);
    EXPECT_NEAR(got.loss, wanted.loss, limit) << what;
    EXPECT_EQ(got.predicted, wanted.predicted) << what;
  };
  for (size_t i = 0; i < start.examples.size(); ++i) {
    const DropoutSource dropout{kFirst.key, kFirst.example + static_cast<uint32_t>(i)};
    const ExampleResult wanted = start.model->train(start.examples[i], 0.25f, dropout, gradients, arena);
    expect_result(trained[i], wanted, "training " + std::to_string(i));
    expect_result(evaluated[i], start.model->evaluate(start.examples[i], arena), "evaluation " + std::to_string(i));
  }
  expect_close(device->gradients(), gradients, tolerance(NumberType::kFloat32, 240, std::max(1.0, largest(gradients))),
               "gradients");
  EXPECT_NEAR(device->gradient_norm(), l2_norm(gradients), 1e-5 * l2_norm(gradients));
}

INSTANTIATE_TEST_SUITE_P(Models, OnDevice, testing::ValuesIn(kVariants),
                         [](const auto& info) { return info.param.name; });

TEST(BatchModel, SameBatchSameBits) {
  const Start start;
  const std::unique_ptr<BatchModel> device = start.on_device();
  device->train(start.examples, 0.25f, kFirst);
  const std::vector<float> once = device->gradients();
  device->evaluate(start.model->parameters(), start.examples);
  device->train(start.examples, 0.25f, kFirst);
  EXPECT_EQ(device->gradients(), once);
  device->train(start.examples, 0.25f, {kFirst.key, kFirst.example + 1});
  EXPECT_NE(device->gradients(), once) << "another dropout";
}

TEST(BatchModel, PrecisionRoundsProducts) {
  const Start start;
  const std::vector<ExampleResult> exact = start.on_device()->evaluate(start.model->parameters(), start.examples);
  double before = 0.0;
  for (const auto& [precision, bits] : {std::pair{"tf32", 10}, {"bfloat16", 7}}) {
    const std::vector<ExampleResult> rounded =
        start.on_device(precision)->evaluate(start.model->parameters(), start.examples);
    double error = 0.0;
    for (size_t i = 0; i < exact.size(); ++i) error = std::max(error, std::abs(exact[i].loss - rounded[i].loss));
    EXPECT_LT(error, 0.5 / (1 << (bits - 2))) << precision;
    // cuBLAS may round, and need not.
    if (lra::device::Device().name() == "emulated device") {
      EXPECT_GT(error, before) << precision;
    }
    before = error;
  }
}

TrainerSettings settings() {
  TrainerSettings s;
  s.schedule.learning_rate = 1e-2, s.schedule.steps = 8, s.schedule.warmup = 2;
  s.batch_size = 4, s.weight_decay = 0.1, s.clip_norm = 0.5, s.seed = 7;
  return s;
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> parameters, m;
};

// Eight steps, taken up again by another trainer after `stop`.
Trained run(const Start& start, BatchModel* device, int stop) {
  Classifier model(start.config);
  model.initialise(3);
  const VectorSource source(start.examples);
  Trained result;
  Threads threads(2);
  threads.run([&] {
    std::unique_ptr<Trainer> trainer = std::make_unique<Trainer>(model, source, settings(), nullptr, device);
    for (int step = 0; step < 8; ++step) {
      if (step == stop) {
        trainer->fetch();
        auto next = std::make_unique<Trainer>(model, source, settings(), nullptr, device);
        std::ranges::copy(trainer->first_moment(), next->first_moment().begin());
        std::ranges::copy(trainer->second_moment(), next->second_moment().begin());
        next->restore(step);
        trainer = std::move(next);
      }
      result.losses.push_back(trainer->step().loss);
    }
    trainer->fetch();
    result.m.assign(trainer->first_moment().begin(), trainer->first_moment().end());
  });
  result.parameters.assign(model.parameters().begin(), model.parameters().end());
  return result;
}

TEST(BatchModel, TrainsAsTheCpuDoes) {
  const Start start;
  const std::unique_ptr<BatchModel> device = start.on_device();
  const Trained wanted = run(start, nullptr, -1), got = run(start, device.get(), -1);
  for (size_t i = 0; i < wanted.losses.size(); ++i) EXPECT_NEAR(got.losses[i], wanted.losses[i], 1e-4) << i;
  const Trained resumed = run(start, device.get(), 3);
  EXPECT_EQ(resumed.losses, got.losses);
  EXPECT_EQ(resumed.parameters, got.parameters);
  EXPECT_EQ(resumed.m, got.m);
}

TEST(BatchModel, EvaluatorGivesTheSameForAnyBatchSize) {
  const Start start;
  const std::unique_ptr<BatchModel> device = start.on_device();
  const VectorSource source(start.examples);
  Threads threads(2);
  threads.run([&] {
    EvaluationSettings settings;
    const EvaluationResult wanted = evaluate(*start.model, source, settings);
    settings.device = device.get();
    for (const int size : {1, 4, 100}) {
      settings.batch_size = size;
      const EvaluationResult got = evaluate(*start.model, source, settings);
      EXPECT_NEAR(got.loss, wanted.loss, 1e-5);
      EXPECT_EQ(got.confusion, wanted.confusion);
      EXPECT_EQ(got.tokens, wanted.tokens);
    }
  });
}

}  // namespace
}  // namespace lra
