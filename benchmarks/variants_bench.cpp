#include "benchmarks/variants_bench.h"

#include <algorithm>
#include <chrono>

#include "benchmarks/fma_peak.h"
#include "benchmarks/step_bench.h"
#include "lib/attention/registry.h"
#include "lib/training/threads.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"

namespace lra {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPeakSeconds = 0.05;

double seconds_of(const std::function<void()>& call) {
  const Clock::time_point start = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int64_t scratch_bytes(const StepRunner& runner) {
  Arena arena;
  std::vector<float> gradients(runner.model().parameters().size());
  const Example example = runner.example();
  for (int i = 0; i < 2; ++i) {  // the second time in one chunk, without gaps
    arena.reset();
    runner.model().train(example, 1.0f, {}, gradients, arena);
  }
  return arena.peak_bytes();
}

struct Baseline {
  double flops = 0.0;
  int64_t scratch = 0;
};

VariantResult bench_one(StepRunner& softmax, const Baseline& baseline, StepRunner& variant, double samples,
                        const VariantsSettings& settings) {
  std::vector<double> times, ratios;
  softmax.train();
  variant.train();
  const double before = measure_fma_peak(settings.threads, kPeakSeconds);
  const Clock::time_point begin = Clock::now();
  while (static_cast<int>(times.size()) < settings.repeats ||
         std::chrono::duration<double>(Clock::now() - begin).count() < settings.seconds) {
    // First and second place in turn, so that neither profits from the other.
    const bool softmax_first = times.size() % 2 == 0;
    double base = 0.0;
    if (softmax_first) base = seconds_of([&] { softmax.train(); });
    times.push_back(seconds_of([&] { variant.train(); }));
    if (!softmax_first) base = seconds_of([&] { softmax.train(); });
    ratios.push_back(times.back() / base);
  }
  // Not inside the rounds, which it would disturb.
  const double after = measure_fma_peak(settings.threads, kPeakSeconds);
  VariantResult result;
  result.repeats = static_cast<int>(times.size());
  result.ms_per_sample = median(times) / samples * 1e3;
  result.ms_per_sample_min = *std::min_element(times.begin(), times.end()) / samples * 1e3;
  result.relative_time = median(ratios);
  result.flops_per_sample = variant.model().flops(variant.example(), true, false);
  result.gflops = result.flops_per_sample / result.ms_per_sample * 1e-6;
  result.peak_gflops = (before + after) / 2;
  result.share_of_peak = result.gflops / result.peak_gflops;
  result.dense_flops_per_sample = variant.model().flops(variant.example(), true, true);
  result.relative_flops = result.flops_per_sample / baseline.flops;
  result.scratch_bytes = scratch_bytes(variant);
  result.relative_scratch = static_cast<double>(result.scratch_bytes) / static_cast<double>(baseline.scratch);
  result.peak_rss_bytes = peak_rss_bytes();
  return result;
}

}  // namespace

std::vector<std::string> all_variants() {
  std::vector<std::string> specs;
  for (const AttentionFamily& family : attention_families()) {
    specs.push_back(family.name);
    if (family.name == "polynomial") specs.emplace_back("polynomial:power=1,form=linear");
  }
  return specs;
}

void bench_variants(const Recipe& recipe, const TaskFacts& task, const VariantsSettings& settings,
                    const std::function<void(const VariantResult&)>& done) {
  Threads threads(settings.threads);
  StepRunner softmax(recipe, task, "softmax", settings.precision);
  Baseline baseline;
  baseline.flops = softmax.model().flops(softmax.example(), true, false);
  threads.run([&] { baseline.scratch = scratch_bytes(softmax); });
  for (const std::string& attention : settings.attentions) {
    VariantResult result;
    try {
      StepRunner variant(recipe, task, attention, settings.precision);
      threads.run(
          [&] { result = bench_one(softmax, baseline, variant, static_cast<double>(recipe.batch_size), settings); });
    } catch (const UsageError& error) {
      result.error = error.what();
    }
    result.attention = parse_attention(attention).canonical();
    result.length = recipe.max_length;
    done(result);
  }
}

Json to_json(const VariantResult& r) {
  Json json = {{"attention", r.attention}, {"length", r.length}};
  if (!r.error.empty()) {
    json["error"] = r.error;
    return json;
  }
  json["ms_per_sample"] = r.ms_per_sample;
  json["ms_per_sample_min"] = r.ms_per_sample_min;
  json["relative_time"] = r.relative_time;
  json["gflops"] = r.gflops;
  json["peak_gflops"] = r.peak_gflops;
  json["share_of_peak"] = r.share_of_peak;
  json["flops_per_sample"] = r.flops_per_sample;
  json["dense_flops_per_sample"] = r.dense_flops_per_sample;
  json["relative_flops"] = r.relative_flops;
  json["peak_rss_bytes"] = r.peak_rss_bytes;
  json["scratch_bytes"] = r.scratch_bytes;
  json["relative_scratch"] = r.relative_scratch;
  json["repeats"] = r.repeats;
  return json;
}

}  // namespace lra
