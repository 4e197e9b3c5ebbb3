// Cross entropy against its formula, its gradient against differences, and logits far from 0.
#include "lib/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/data.h"

namespace lra {
namespace {

TEST(CrossEntropy, IsMinusTheLogOfTheProbability) {
  const std::vector<float> logits = {1.0f, -0.5f, 2.0f};
  const double sum = std::exp(1.0) + std::exp(-0.5) + std::exp(2.0);
  for (int label = 0; label < 3; ++label) {
    EXPECT_NEAR(cross_entropy(logits, label, 1.0f, {}), std::log(sum) - logits[label], 1e-15);
    EXPECT_NEAR(probability(logits, label), std::exp(static_cast<double>(logits[label])) / sum, 1e-15);
  }
}

TEST(CrossEntropy, GradientIsTheDerivative) {
  // Logits are float: steps are powers of two that they hold exactly.
  std::vector<float> logits = {0.5f, -1.25f, 2.0f, 0.0f};
  std::vector<float> gradient(4, NAN);
  constexpr float kWeight = 0.25f, kStep = 0x1p-10f;
  cross_entropy(logits, 1, kWeight, gradient);
  std::vector<double> slopes;
  for (float& logit : logits) {
    const float start = logit;
    logit = start + kStep;
    const double above = cross_entropy(logits, 1, 1.0f, {});
    logit = start - kStep;
    slopes.push_back(kWeight * (above - cross_entropy(logits, 1, 1.0f, {})) / (2 * kStep));
    logit = start;
  }
  expect_close(gradient, slopes, 1e-7, "gradient of the logits");
  EXPECT_NEAR(std::accumulate(gradient.begin(), gradient.end(), 0.0), 0.0, 1e-7);
}

TEST(CrossEntropy, LargeLogitsNeitherOverflowNorVanish) {
  const std::vector<float> logits = {1e4f, -1e4f, 1e4f};
  std::vector<float> gradient(3);
  EXPECT_DOUBLE_EQ(cross_entropy(logits, 0, 1.0f, gradient), std::log(2.0));
  EXPECT_EQ(gradient, (std::vector<float>{-0.5f, 0.0f, 0.5f}));
  EXPECT_DOUBLE_EQ(cross_entropy(logits, 1, 1.0f, {}), 2e4 + std::log(2.0));
  EXPECT_EQ(probability(logits, 1), 0.0);
}

TEST(CrossEntropy, PassesNanAndRejectsLabelsOutside) {
  const std::vector<float> nan = {1.0f, NAN};
  EXPECT_TRUE(std::isnan(cross_entropy(nan, 0, 1.0f, {})));
  const std::vector<float> logits = {1.0f, 2.0f};
  std::vector<float> three(3);
  EXPECT_THROW(cross_entropy(logits, 2, 1.0f, {}), std::logic_error);
  EXPECT_THROW(cross_entropy(logits, -1, 1.0f, {}), std::logic_error);
  EXPECT_THROW(cross_entropy(logits, 0, 1.0f, three), std::logic_error);
  EXPECT_THROW(probability({}, 0), std::logic_error);
}

}  // namespace
}  // namespace lra
