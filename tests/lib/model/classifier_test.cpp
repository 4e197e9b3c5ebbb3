// Properties of the classifier that PyTorch's numbers (tests/golden) do not show: empty sequences, dropout, scaling of
// gradients, memory, products.
#include "lib/model/classifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/examples.h"
#include "tests/support/models.h"

namespace lra {
namespace {

std::vector<ModelConfig> all_shapes() {
  std::vector<ModelConfig> configs;
  for (const char* pooling : {"mean-padded", "mean", "cls", "cls-vector"}) {
    for (const bool pair : {false, true}) {
      ModelConfig config = small_config();
      config.pooling = pooling;
      config.pair = pair;
      config.pair_head = config.pooling == "cls-vector" ? "two" : "four";
      configs.push_back(config);
    }
  }
  return configs;
}

bool all_finite(std::span<const float> x) {
  return std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
}

std::vector<float> gradients_of(const Classifier& model, const Example& example, const DropoutSource& dropout,
                                float weight = 1.0f) {
  std::vector<float> gradients(model.parameters().size());
  Arena arena;
  model.train(example, weight, dropout, gradients, arena);
  return gradients;
}

TEST(Classifier, EmptySequencesGiveFiniteGradients) {
  for (const ModelConfig& config : all_shapes()) {
    Classifier model(config);
    model.initialise(3);
    const Example empty;
    Arena arena;
    const ExampleResult result = model.evaluate(empty, arena);
    EXPECT_TRUE(all_finite(result.logits));
    EXPECT_TRUE(all_finite(gradients_of(model, empty, {})));
    if (config.pooling == "cls-vector") continue;
    // Zeros reach the head: the logits are those of its biases alone, and the encoder gets no gradient.
    const std::vector<float> gradients = gradients_of(model, empty, {});
    for (const ParameterInfo& info : model.layout().all()) {
      if (!info.name.starts_with("encoder.")) continue;
      for (int64_t i = 0; i < info.size; ++i) ASSERT_EQ(gradients[info.offset + i], 0.0f) << info.name;
    }
  }
}

TEST(Classifier, OneEmptySequenceOfAPair) {
  ModelConfig config = small_config();
  config.pair = true;
  Classifier model(config);
  model.initialise(3);
  Example example = random_examples(config, 3, 1)[2];
  example.second = {};
  EXPECT_TRUE(all_finite(gradients_of(model, example, {})));
}

TEST(Classifier, GradientsAreAddedAndScaleWithTheWeight) {
  const ModelConfig config = small_config();
  Classifier model(config);
  model.initialise(3);
  const Example example = random_examples(config, 1, 2)[0];
  const std::vector<float> whole = gradients_of(model, example, {{1, 2}, 3});
  std::vector<float> twice(whole.size());
  Arena arena;
  for (int i = 0; i < 2; ++i) model.train(example, 0.5f, {{1, 2}, 3}, twice, arena);
  const double scale = *std::ranges::max_element(whole);
  for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(twice[i], whole[i], 1e-6 * scale);
}

TEST(Classifier, DropoutDependsOnKeyAndPlaceInTheBatchAlone) {
  const ModelConfig config = small_config();
  Classifier model(config);
  model.initialise(3);
  const Example example = random_examples(config, 1, 2)[0];
  const std::vector<float> first = gradients_of(model, example, {{1, 2}, 3});
  EXPECT_EQ(first, gradients_of(model, example, {{1, 2}, 3}));
  EXPECT_NE(first, gradients_of(model, example, {{1, 2}, 4}));
  EXPECT_NE(first, gradients_of(model, example, {{2, 2}, 3}));
}

TEST(Classifier, PairsDrawTwoMasks) {
  ModelConfig config = small_config();
  config.pair = true;
  config.dropout = 0.5f;
  config.attention_dropout = 0.0f;
  Classifier model(config);
  model.initialise(3);
  // With equal sequences, x - y is 0 unless the masks differ: its head weights get no gradient.
  Example example = random_examples(config, 1, 2)[0];
  example.second = example.first;
  const std::vector<float> gradients = gradients_of(model, example, {{1, 2}, 3});
  const ParameterInfo& head = model.layout().at("head_in.weight");
  double difference_part = 0.0;
  for (int64_t row = 0; row < head.shape[0]; ++row) {
    for (int64_t i = 3 * config.dim; i < 4 * config.dim; ++i) {
      difference_part += std::abs(gradients[head.offset + row * head.shape[1] + i]);
    }
  }
  EXPECT_GT(difference_part, 0.0);
}

// The mean of the loss's slope over dropout masks is that of central differences of the loss with the same masks.
TEST(Classifier, BackwardDrawsTheMasksOfForward) {
  for (ModelConfig config : all_shapes()) {
    config.dropout = 0.3f;
    config.attention_dropout = 0.2f;
    Classifier model(config);
    model.initialise(3);
    const Example example = random_examples(config, 4, 5)[3];
    const DropoutSource dropout{{7, 8}, 9};
    const std::vector<float> gradients = gradients_of(model, example, dropout);
    // Along the gradient itself, where the slope is largest.
    double norm = 0.0;
    for (const float g : gradients) norm += static_cast<double>(g) * g;
    norm = std::sqrt(norm);
    const std::vector<float> start(model.parameters().begin(), model.parameters().end());
    const auto loss_at = [&](double distance) {
      for (size_t i = 0; i < start.size(); ++i) {
        model.parameters()[i] = static_cast<float>(start[i] + distance * gradients[i] / norm);
      }
      std::vector<float> unused(start.size());
      Arena arena;
      return model.train(example, 1.0f, dropout, unused, arena).loss;
    };
    const double step = 2e-4;
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(slope, norm, 5e-3 * norm) << config.pooling << (config.pair ? " pair" : "");
  }
}

TEST(Classifier, RefusesWhatTheModelCannotHold) {
  const ModelConfig config = small_config();
  Classifier model(config);
  Arena arena;
  const auto run = [&](std::vector<int32_t> ids, std::vector<int32_t> places, int label) {
    model.evaluate({{std::move(ids), std::move(places)}, {}, label}, arena);
  };
  EXPECT_NO_THROW(run({19}, {63}, 4));
  EXPECT_THROW(run({20}, {0}, 0), std::logic_error);
  EXPECT_THROW(run({0}, {0}, 0), std::logic_error);
  EXPECT_THROW(run({1}, {64}, 0), std::logic_error);
  EXPECT_THROW(run({1, 2}, {0}, 0), std::logic_error);
  EXPECT_THROW(run({1}, {0}, 5), std::logic_error);
  EXPECT_THROW(run({1}, {0}, -1), std::logic_error);
}

TEST(Classifier, CountsProducts) {
  ModelConfig config = small_config();
  Classifier model(config);
  Example example;
  example.first = make_sequence(std::vector<int32_t>(10, 1));
  const double n = 10, e = 16, hidden = 24, head_dim = 8;
  const double weights = 2 * (4 * e * e + 2 * e * hidden), head = e * hidden + hidden * 5;
  const double attention = 2 * 2 * n * n * head_dim;  // layers, heads
  EXPECT_DOUBLE_EQ(model.flops(example, false, true), 2 * (weights * n + head) + 4 * attention);
  EXPECT_DOUBLE_EQ(model.flops(example, true, true), 6 * (weights * n + head) + 14 * attention);
  config.pooling = "cls-vector";  // one more row
  Classifier with_vector(config);
  EXPECT_GT(with_vector.flops(example, true, true), model.flops(example, true, true));
  config.pooling = "mean-padded", config.pair = true;
  Classifier pair(config);
  example.second = example.first;
  EXPECT_DOUBLE_EQ(pair.flops(example, true, true) - 6 * (4 * e * hidden + hidden * 5),
                   2 * (model.flops(example, true, true) - 6 * head));
}

TEST(MakeSequence, DropsPaddingAndKeepsPlaces) {
  const Sequence sequence = make_sequence({0, 5, 0, 0, 7, 1, 0});
  EXPECT_EQ(sequence.ids, (std::vector<int32_t>{5, 7, 1}));
  EXPECT_EQ(sequence.places, (std::vector<int32_t>{1, 4, 5}));
  EXPECT_TRUE(make_sequence({}).ids.empty());
  EXPECT_TRUE(make_sequence({0, 0}).places.empty());
}

}  // namespace
}  // namespace lra
