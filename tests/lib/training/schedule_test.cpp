// Rates against PyTorch's OneCycleLR, the edges PyTorch cannot do, and the schedules of the original code.
#include "lib/training/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numbers>

#include "lib/tensor/safetensors.h"
#include "lib/util/check.h"

namespace lra {
namespace {

ScheduleSettings settings(const std::string& form, int64_t steps, int64_t warmup, double rate = 1.0) {
  return {form, rate, steps, warmup};
}

TEST(Schedule, OneCycleIsPyTorchs) {
  const SafetensorsFile file =
      read_safetensors(std::string(LRA_SOURCE_DIR) + "/tests/golden/fixtures/schedule.safetensors");
  int compared = 0;
  for (const auto& [name, tensor] : file.tensors) {
    long steps = 0, warmup = 0;
    const bool is_rate = std::sscanf(name.c_str(), "rate.%ld-%ld", &steps, &warmup) == 2;
    ASSERT_TRUE(is_rate || std::sscanf(name.c_str(), "beta1.%ld-%ld", &steps, &warmup) == 2) << name;
    ASSERT_EQ(tensor.elements(), steps);
    for (int64_t update = 0; update < steps; ++update) {
      const Rate rate = schedule_rate(settings("one-cycle", steps, warmup), update);
      ASSERT_NEAR(is_rate ? rate.learning_rate : rate.beta1, tensor.floats()[static_cast<size_t>(update)], 1e-7)
          << name << " at update " << update;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 18);
}

TEST(Schedule, OneCycleWithWarmupOfOneStartsAtThePeak) {
  const ScheduleSettings s = settings("one-cycle", 10, 1);
  EXPECT_EQ(schedule_rate(s, 0).learning_rate, 1.0);
  EXPECT_EQ(schedule_rate(s, 0).beta1, 0.85);
  for (int64_t update = 1; update < 10; ++update) {
    const double share = static_cast<double>(update) / 9.0;
    EXPECT_NEAR(schedule_rate(s, update).learning_rate, 1.0 + share * (4e-6 - 1.0), 1e-15);
    EXPECT_NEAR(schedule_rate(s, update).beta1, 0.85 + share * 0.1, 1e-15);
  }
  EXPECT_EQ(schedule_rate(settings("one-cycle", 1, 1), 0).learning_rate, 1.0);
  EXPECT_EQ(schedule_rate(settings("one-cycle", 2, 1), 0).learning_rate, 1.0);
  EXPECT_NEAR(schedule_rate(settings("one-cycle", 2, 1), 1).learning_rate, 4e-6, 1e-15);
}

TEST(Schedule, OneCycleWithWarmupBeyondTheStepsOnlyRises) {
  double before = 0.0;
  for (int64_t update = 0; update < 5; ++update) {
    const double rate = schedule_rate(settings("one-cycle", 5, 8), update).learning_rate;
    EXPECT_GT(rate, before);
    EXPECT_LT(rate, 1.0);
    before = rate;
  }
}

TEST(Schedule, ReciprocalSquareRoot) {
  const ScheduleSettings s = settings("rsqrt", 5000, 1000, 0.05);
  EXPECT_EQ(schedule_rate(s, 0).learning_rate, 0.0);
  EXPECT_NEAR(schedule_rate(s, 500).learning_rate, 0.05 * 0.5 / std::sqrt(1000.0), 1e-15);
  EXPECT_NEAR(schedule_rate(s, 4000).learning_rate, 0.05 / std::sqrt(4000.0), 1e-15);
  EXPECT_EQ(schedule_rate(s, 4000).beta1, 0.9);
  EXPECT_NEAR(schedule_rate(settings("rsqrt", 10, 20), 5).learning_rate, 0.25 / std::sqrt(20.0), 1e-15);
  EXPECT_EQ(schedule_rate(settings("rsqrt", 10, 0), 0).learning_rate, 1.0);
  EXPECT_EQ(schedule_rate(settings("rsqrt", 10, 0), 4).learning_rate, 0.5);
}

TEST(Schedule, Cosine) {
  const ScheduleSettings s = settings("cosine", 100, 10, 2.0);
  EXPECT_EQ(schedule_rate(s, 0).learning_rate, 0.0);
  EXPECT_NEAR(schedule_rate(s, 5).learning_rate, 1.0, 1e-15);
  EXPECT_NEAR(schedule_rate(s, 10).learning_rate, 2.0, 1e-15);
  EXPECT_NEAR(schedule_rate(s, 60).learning_rate, 1.0, 1e-12);
  EXPECT_NEAR(schedule_rate(s, 99).learning_rate, 1.0 + std::cos(std::numbers::pi * 0.89), 1e-12);
  EXPECT_EQ(schedule_rate(s, 60).beta1, 0.9);
}

TEST(Schedule, Constant) {
  EXPECT_EQ(schedule_rate(settings("constant", 3, 0, 0.5), 2).learning_rate, 0.5);
  EXPECT_EQ(schedule_rate(settings("constant", 3, 0, 0.5), 0).beta1, 0.9);
}

TEST(Schedule, UnknownFormIsNamed) { EXPECT_THROW(schedule_rate(settings("step", 3, 0), 0), UsageError); }

}  // namespace
}  // namespace lra
