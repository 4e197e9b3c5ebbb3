// Training steps of attention variants beside softmax: time, products and scratch memory. Each round times a step of
// softmax and one of the variant, and the median of the rounds' ratios counts: a machine that is busy now and then
// slows both.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/ops/precision.h"
#include "lib/util/json.h"
#include "tasks/recipe.h"

namespace lra {

struct VariantsSettings {
  std::vector<std::string> attentions;  // specs
  int threads = 1;
  double seconds = 3.0;  // of rounds, at least
  int repeats = 5;       // rounds, at least
  Precision precision = Precision::kFloat32;
};

struct VariantResult {
  std::string attention;  // canonical
  int64_t length = 0;
  std::string error;  // why this variant does not run at this size; all else is 0 then
  double ms_per_sample = 0.0, ms_per_sample_min = 0.0;  // median and best over the rounds
  double relative_time = 0.0;
  double gflops = 0.0, share_of_peak = 0.0;  // of the median
  double peak_gflops = 0.0;                  // mean of the FMA peaks right before and right after the rounds
  double flops_per_sample = 0.0, relative_flops = 0.0, dense_flops_per_sample = 0.0;
  // Most arena memory in use at once while one example is trained: activations and scratch, neither weights nor
  // gradients.
  int64_t scratch_bytes = 0;
  double relative_scratch = 0.0;
  int64_t peak_rss_bytes = 0;  // of the process until then: softmax and all variants before are in it
  int repeats = 0;
};

// One spec of every family with its defaults, and the linear form of the first power.
std::vector<std::string> all_variants();

// recipe: resolved, its max_length is the length. Calls done for each variant in their order.
void bench_variants(const Recipe& recipe, const TaskFacts& task, const VariantsSettings& settings,
                    const std::function<void(const VariantResult&)>& done);

Json to_json(const VariantResult& result);

// Relative times as an SVG picture: a row a variant, a dot a length. title: above it.
std::string plot_variants(const std::vector<VariantResult>& results, const std::string& title);

}  // namespace lra
