// AdamW against values recorded from torch.optim.AdamW, and against the paper's formulas in double.
#include "lib/ops/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/lib/ops/adamw_recorded.h"
#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

TEST(AdamW, AgreesWithPyTorch) {
  const size_t n = std::size(recorded::kStart);
  for_each_target([&](const std::string& target) {
    std::vector<float> parameters(recorded::kStart, recorded::kStart + n), m(n), v(n);
    for (int step = 1; step <= recorded::kSteps; ++step) {
      const AdamWSettings settings{recorded::kRates[step - 1], recorded::kBeta1[step - 1], 0.999, 1e-6, 0.1};
      adamw_update(settings, step, parameters, {recorded::kGradients + (step - 1) * n, n}, m, v);
    }
    const auto close = [&](const std::vector<float>& actual, std::span<const float> wanted, const char* what) {
      // A few roundings each step, all relative to the value itself.
      for (size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(actual[i], wanted[i], 1e-6 * std::abs(wanted[i]) + 1e-8) << target << " " << what << " " << i;
      }
    };
    close(parameters, recorded::kParameters, "parameters");
    close(m, recorded::kFirst, "first moments");
    close(v, recorded::kSecond, "second moments");
  });
}

TEST(AdamW, AgreesWithReference) {
  const AdamWSettings settings{2e-3, 0.9, 0.98, 1e-9, 0.01};
  for (const int n : {0, 1, 7, 64, 1000}) {
    for_each_target([&](const std::string& target) {
      std::vector<float> parameters = random_normal<float>(n, 1), m(n), v(n);
      std::vector<double> parameters64 = to_double(parameters), m64(n), v64(n);
      for (int step = 1; step <= 4; ++step) {
        const std::vector<float> gradients = random_normal<float>(n, 10 + step);
        adamw_update(settings, step, parameters, gradients, m, v);
        ref::adamw_update<double>(settings, step, parameters64, to_double(gradients), m64, v64);
      }
      if (n == 0) return;
      const auto allowed = [](const std::vector<double>& x) { return tolerance(NumberType::kFloat32, 4, largest(x)); };
      expect_close(parameters, parameters64, allowed(parameters64), target + " parameters");
      expect_close(m, m64, allowed(m64), target + " m");
      expect_close(v, v64, allowed(v64), target + " v");
    });
  }
}

TEST(AdamW, DecayIsApartFromTheGradient) {
  std::vector<float> parameters = {2.0f}, gradients = {0.0f}, m = {0.0f}, v = {0.0f};
  adamw_update({0.1, 0.9, 0.999, 1e-8, 0.5}, 1, parameters, gradients, m, v);
  EXPECT_FLOAT_EQ(parameters[0], 1.9f);
  EXPECT_EQ(m[0], 0.0f);
  EXPECT_EQ(v[0], 0.0f);
}

TEST(AdamW, EpsilonStandsBesideTheCorrectedRoot) {
  // After one step the corrected moments are g and g^2: the change is rate * g / (|g| + epsilon).
  std::vector<float> parameters = {0.0f}, gradients = {-1e-4f}, m = {0.0f}, v = {0.0f};
  adamw_update({0.1, 0.9, 0.999, 1e-3, 0.0}, 1, parameters, gradients, m, v);
  EXPECT_NEAR(parameters[0], 0.1 * 1e-4 / 1.1e-3, 1e-8);
}

TEST(AdamW, RejectsBrokenPromises) {
  std::vector<float> two(2), three(3);
  EXPECT_THROW(adamw_update({}, 0, two, two, two, two), std::logic_error);
  EXPECT_THROW(adamw_update({}, 1, two, three, two, two), std::logic_error);
  EXPECT_THROW(adamw_update({}, 1, two, two, three, two), std::logic_error);
  EXPECT_THROW(adamw_update({}, 1, two, two, two, three), std::logic_error);
}

TEST(L2Norm, SumsInDouble) {
  EXPECT_EQ(l2_norm({}), 0.0);
  EXPECT_EQ(l2_norm(std::vector<float>{3, 4}), 5.0);
  // In float the squares would overflow, or ones be lost beside 2^24.
  EXPECT_DOUBLE_EQ(l2_norm(std::vector<float>{3e30f, 4e30f}), std::hypot(double{3e30f}, double{4e30f}));
  std::vector<float> ones(1000, 1.0f);
  ones[0] = 4096.0f;
  EXPECT_DOUBLE_EQ(l2_norm(ones), std::sqrt(4096.0 * 4096.0 + 999.0));
  const std::vector<float> x = random_normal<float>(1003, 1);
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  EXPECT_NEAR(l2_norm(x), std::sqrt(sum), tolerance(NumberType::kFloat64, 1003, std::sqrt(sum)));
  EXPECT_TRUE(std::isnan(l2_norm(std::vector<float>{1, NAN})));
}

}  // namespace
}  // namespace lra
