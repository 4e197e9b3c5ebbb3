// Start values: the distributions of the two originals, and what they are a function of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lib/model/classifier.h"

namespace lra {
namespace {

std::span<const float> tensor(const Classifier& model, const std::string& name) {
  const ParameterInfo& info = model.layout().at(name);
  return model.parameters().subspan(static_cast<size_t>(info.offset), static_cast<size_t>(info.size));
}

struct Moments {
  double mean = 0.0, deviation = 0.0, largest = 0.0;
};

Moments moments(std::span<const float> x) {
  Moments m;
  for (const float value : x) {
    m.mean += value;
    m.largest = std::max(m.largest, std::abs(static_cast<double>(value)));
  }
  m.mean /= static_cast<double>(x.size());
  for (const float value : x) m.deviation += (value - m.mean) * (value - m.mean);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(x.size()));
  return m;
}

// Mean and deviation within five standard errors (those of a normal sample are the largest here).
void expect_moments(const Classifier& model, const std::string& name, double deviation) {
  const std::span<const float> x = tensor(model, name);
  const Moments m = moments(x);
  const double error = deviation / std::sqrt(static_cast<double>(x.size()));
  EXPECT_LE(std::abs(m.mean), 5 * error) << name;
  EXPECT_LE(std::abs(m.deviation - deviation), 5 * error) << name;
}

void expect_constant(const Classifier& model, const std::string& name, float value) {
  for (const float x : tensor(model, name)) EXPECT_EQ(x, value) << name;
}

TEST(Initialise, Nystromformer) {
  Classifier model{ModelConfig()};
  model.initialise(1);
  expect_moments(model, "encoder.token_embedding.weight", 0.02);
  expect_moments(model, "encoder.position_embedding.weight", 0.02);
  for (const std::string linear : {"encoder.blocks.0.attention.query", "encoder.blocks.1.mlp_out", "head_in"}) {
    const auto in = static_cast<double>(model.layout().at(linear + ".weight").shape[1]);
    for (const char* part : {".weight", ".bias"}) {
      expect_moments(model, linear + part, 1.0 / std::sqrt(3.0 * in));
      EXPECT_LE(moments(tensor(model, linear + part)).largest, 1.0 / std::sqrt(in));
    }
  }
  expect_constant(model, "encoder.blocks.1.mlp_norm.weight", 1.0f);
  expect_constant(model, "encoder.final_norm.bias", 0.0f);
}

TEST(Initialise, Lra) {
  ModelConfig config;
  config.init = "lra";
  config.pooling = "cls-vector";
  Classifier model(config);
  model.initialise(1);
  expect_moments(model, "encoder.token_embedding.weight", 1.0);
  expect_moments(model, "encoder.position_embedding.weight", 0.02);
  expect_constant(model, "encoder.cls", 0.0f);
  expect_moments(model, "encoder.blocks.0.mlp_in.weight", std::sqrt(2.0 / (64 + 128)));
  EXPECT_LE(moments(tensor(model, "encoder.blocks.0.mlp_in.weight")).largest, std::sqrt(6.0 / (64 + 128)));
  expect_moments(model, "encoder.blocks.0.mlp_in.bias", 1e-6);
  expect_moments(model, "head_in.weight", 1.0 / std::sqrt(64.0));
  EXPECT_LE(moments(tensor(model, "head_in.weight")).largest, 2.0 / (0.87962566 * std::sqrt(64.0)));
  expect_constant(model, "head_in.bias", 0.0f);
}

TEST(Initialise, IsAFunctionOfSeedAndName) {
  ModelConfig config;
  Classifier a(config), b(config), other(config);
  a.initialise(5);
  b.initialise(5);
  other.initialise(6);
  EXPECT_TRUE(std::ranges::equal(a.parameters(), b.parameters()));
  EXPECT_FALSE(std::ranges::equal(tensor(a, "head_in.weight"), tensor(other, "head_in.weight")));
  EXPECT_FALSE(
      std::ranges::equal(tensor(a, "encoder.blocks.0.mlp_in.weight"), tensor(a, "encoder.blocks.1.mlp_in.weight")));
  // More layers and another attention leave what both models have as it is.
  config.layers = 3;
  config.attention = "polynomial:power=3,scale=16";
  Classifier more(config);
  more.initialise(5);
  EXPECT_TRUE(std::ranges::equal(tensor(a, "head_in.weight"), tensor(more, "head_in.weight")));
  EXPECT_TRUE(
      std::ranges::equal(tensor(a, "encoder.blocks.1.mlp_in.weight"), tensor(more, "encoder.blocks.1.mlp_in.weight")));
}

}  // namespace
}  // namespace lra
