#include "benchmarks/norms_bench.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/step_bench.h"
#include "lib/attention/registry.h"
#include "lib/diagnostics/norms.h"
#include "lib/training/task_fork.h"
#include "lib/training/threads.h"

namespace lra {

StartNorms measure_start_norms(const Recipe& recipe, const TaskFacts& task, const std::string& attention, int examples,
                               int threads) {
  Recipe sized = recipe;
  sized.batch_size = examples;
  const StepRunner runner(sized, task, attention, Precision::kFloat32);
  std::vector<Example> rows(static_cast<size_t>(examples));
  for (int i = 0; i < examples; ++i) rows[static_cast<size_t>(i)] = runner.example(i);
  std::vector<AttentionNorms> norms;
  Threads pool(threads);
  pool.run([&] {
    const TaskFork fork;
    norms = measure_norms(runner.model(), rows, &fork);
  });
  StartNorms result{parse_attention(attention).canonical(), recipe.max_length};
  std::erase_if(norms, [](const AttentionNorms& one) { return one.layer > 0; });
  result.max_score = norms.front().max_score;
  const auto count = static_cast<double>(norms.size());
  for (const AttentionNorms& one : norms) {
    result.frobenius += one.frobenius_mean / count;
    result.jacobian += one.jacobian / count;
    result.score_gradient += one.score_gradient / count;
    result.max_score = std::max(result.max_score, one.max_score);
  }
  return result;
}

Json to_json(const StartNorms& norms) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  return {{"attention", norms.attention},
          {"length", norms.length},
          {"frobenius", number(norms.frobenius)},
          {"jacobian", number(norms.jacobian)},
          {"score_gradient", number(norms.score_gradient)},
          {"max_score", number(norms.max_score)}};
}

}  // namespace lra
