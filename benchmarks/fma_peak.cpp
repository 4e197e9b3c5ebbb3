#include "benchmarks/fma_peak.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "lib/ops/bfloat16.h"
#include "lib/util/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/fma_peak.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Runs `rounds` rounds of 12 independent FMAs; returns the floating-point operations done and keeps the sum alive.
double fma_rounds(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 1e-3f);
  auto a0 = hn::Set(d, 0.0f), a1 = hn::Set(d, 0.1f), a2 = hn::Set(d, 0.2f), a3 = hn::Set(d, 0.3f);
  auto a4 = hn::Set(d, 0.4f), a5 = hn::Set(d, 0.5f), a6 = hn::Set(d, 0.6f), a7 = hn::Set(d, 0.7f);
  auto a8 = hn::Set(d, 0.8f), a9 = hn::Set(d, 0.9f), a10 = hn::Set(d, 1.0f), a11 = hn::Set(d, 1.1f);
  for (int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, factor, term), a1 = hn::MulAdd(a1, factor, term), a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term), a4 = hn::MulAdd(a4, factor, term), a5 = hn::MulAdd(a5, factor, term);
    a6 = hn::MulAdd(a6, factor, term), a7 = hn::MulAdd(a7, factor, term), a8 = hn::MulAdd(a8, factor, term);
    a9 = hn::MulAdd(a9, factor, term), a10 = hn::MulAdd(a10, factor, term), a11 = hn::MulAdd(a11, factor, term);
  }
  const auto low = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const auto high = hn::Add(hn::Add(hn::Add(a6, a7), hn::Add(a8, a9)), hn::Add(a10, a11));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lra {

HWY_EXPORT(fma_rounds);

namespace {

using Rounds = double (*)(int64_t rounds, float* sink);

double measure(Rounds rounds, int threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTries = 5;
  constexpr int64_t kRounds = 20000;
  std::barrier start(threads);
  std::vector<std::vector<double>> rates(threads, std::vector<double>(kTries));
  std::vector<float> sinks(threads);
  const auto work = [&](int thread) {
    for (int k = 0; k < kTries; ++k) {
      start.arrive_and_wait();
      const auto begin = Clock::now();
      double flops = 0.0, elapsed = 0.0;
      do {
        flops += rounds(kRounds, &sinks[thread]);
        elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
      } while (elapsed < seconds / kTries);
      rates[thread][k] = flops / elapsed * 1e-9;
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
  }
  double best = 0.0;
  for (int k = 0; k < kTries; ++k) {
    double sum = 0.0;
    for (int t = 0; t < threads; ++t) sum += rates[t][k];
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

double measure_fma_peak(int threads, double seconds) {
  const Rounds rounds = [](int64_t count, float* sink) { return HWY_DYNAMIC_DISPATCH(fma_rounds)(count, sink); };
  return measure(rounds, threads, seconds);
}

double measure_bfloat16_peak(int threads, double seconds) {
  if (!bfloat16_supported()) return 0.0;
  return measure(amx_bfloat16_usable() ? amx_rounds : bfloat16_rounds, threads, seconds);
}

}  // namespace lra
#endif
