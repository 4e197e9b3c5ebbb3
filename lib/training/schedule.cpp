// Learning-rate schedules: one cycle (Smith & Topin 2017) as PyTorch computes it, and those of the original Long Range
// Arena code.
#include "lib/training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/util/check.h"

namespace lra {
namespace {

double interpolate(double from, double to, double share) { return (to - from) * share + from; }

// Two phases: up to the peak at update warmup-1, down to the end at update steps-1. PyTorch starts the second phase at
// warmup-1 also when that is -1 (no warm-up): the first update is then one step down already.
Rate one_cycle(const ScheduleSettings& s, int64_t update) {
  constexpr double kStartDivisor = 25.0, kEndDivisor = 1e4, kHighBeta = 0.95, kLowBeta = 0.85;
  const double peak = s.learning_rate, start = peak / kStartDivisor, end = start / kEndDivisor;
  const int64_t top = s.warmup - 1, last = s.steps - 1;
  if (top == 0 && update == 0) return {peak, kLowBeta};  // PyTorch divides by zero here
  if (update <= top || top >= last) {                    // a warm-up that lasts to the end never comes down
    const double share = static_cast<double>(update) / static_cast<double>(top);
    return {interpolate(start, peak, share), interpolate(kHighBeta, kLowBeta, share)};
  }
  const double share = static_cast<double>(update - top) / static_cast<double>(last - top);
  return {interpolate(peak, end, share), interpolate(kLowBeta, kHighBeta, share)};
}

// Linear up over the warm-up, which may be longer than the training; none: full rate from the start.
double ramp(const ScheduleSettings& s, double update) {
  return s.warmup > 0 ? std::min(1.0, update / static_cast<double>(s.warmup)) : 1.0;
}

}  // namespace

Rate schedule_rate(const ScheduleSettings& s, int64_t update) {
  constexpr double kBeta = 0.9;
  check(update >= 0 && update < s.steps, "update {} of {}", update, s.steps);
  if (s.form == "one-cycle") return one_cycle(s, update);
  if (s.form == "constant") return {s.learning_rate, kBeta};
  const double now = static_cast<double>(update), warmup = static_cast<double>(s.warmup);
  if (s.form == "rsqrt") {
    return {s.learning_rate * ramp(s, now) / std::sqrt(std::max({now, warmup, 1.0})), kBeta};
  }
  if (s.form == "cosine") {
    const double turn = std::max(0.0, now - warmup) / static_cast<double>(s.steps);
    return {s.learning_rate * ramp(s, now) * 0.5 * (1.0 + std::cos(std::numbers::pi * turn)), kBeta};
  }
  throw UsageError("schedule is \"{}\", must be one of one-cycle, rsqrt, cosine, constant", s.form);
}

}  // namespace lra
