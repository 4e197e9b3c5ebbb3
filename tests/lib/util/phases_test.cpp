// Time is booked on the innermost phase, of every thread, and only between start and stop.
#include "lib/util/phases.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lra {
namespace {

void busy(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
  }
}

double of(const PhaseSeconds& seconds, Phase phase) { return seconds[static_cast<size_t>(phase)]; }

TEST(Phases, InnermostOfEveryThread) {
  {
    const PhaseScope before(Phase::kHead);
    busy(0.001);
  }
  start_phases();
  const auto work = [] {
    busy(0.005);  // in no phase
    const PhaseScope outer(Phase::kLinear);
    busy(0.01);
    {
      const PhaseScope inner(Phase::kNorm);
      busy(0.02);
    }
    busy(0.01);
  };
  std::thread other(work);
  work();
  other.join();
  const PhaseSeconds seconds = stop_phases();
  EXPECT_GE(of(seconds, Phase::kLinear), 0.04);
  EXPECT_GE(of(seconds, Phase::kNorm), 0.04);
  EXPECT_EQ(of(seconds, Phase::kHead), 0.0);
  EXPECT_EQ(of(seconds, Phase::kOther), 0.0);
  {
    const PhaseScope after(Phase::kHead);
    busy(0.001);
  }
  start_phases();
  EXPECT_EQ(stop_phases(), PhaseSeconds{});
}

TEST(Phases, HaveNames) {
  for (int i = 0; i < kPhaseCount; ++i) EXPECT_STRNE(phase_name(static_cast<Phase>(i)), "?");
}

}  // namespace
}  // namespace lra
