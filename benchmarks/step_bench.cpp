#include "benchmarks/step_bench.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "benchmarks/fma_peak.h"
#include "lib/attention/registry.h"
#include "lib/training/evaluator.h"
#include "lib/training/threads.h"
#include "lib/training/trainer.h"
#include "lib/util/cpu.h"
#include "lib/util/rng.h"

namespace lra {
namespace {

// Random tokens on every place, a function of the index.
class SyntheticSource final : public ExampleSource {
 public:
  SyntheticSource(int64_t examples, const ModelConfig& config) : examples_(examples), config_(config) {}
  int64_t size() const override { return examples_; }
  Example get(int64_t index) const override {
    Random random(0, RandomStream::kData, static_cast<uint64_t>(index));
    Example example;
    example.first = sequence(random);
    if (config_.pair) example.second = sequence(random);
    example.label = static_cast<int32_t>(random.below(static_cast<uint32_t>(config_.classes)));
    return example;
  }

 private:
  Sequence sequence(Random& random) const {
    Sequence sequence;
    sequence.ids.resize(static_cast<size_t>(config_.max_length));
    sequence.places.resize(sequence.ids.size());
    std::iota(sequence.places.begin(), sequence.places.end(), 0);
    for (int32_t& id : sequence.ids) id = 1 + static_cast<int32_t>(random.below(config_.vocabulary - 2));
    return sequence;
  }

  int64_t examples_;
  ModelConfig config_;
};

// Seconds of each call, after one that is not counted.
std::vector<double> time_calls(const StepBenchSettings& settings, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  call();
  std::vector<double> seconds;
  if (settings.profile) start_phases();
  const auto begin = Clock::now();
  while (static_cast<int>(seconds.size()) < settings.repeats || since(begin) < settings.seconds) {
    const auto start = Clock::now();
    call();
    seconds.push_back(since(start));
  }
  return seconds;
}

}  // namespace

struct StepRunner::State {
  State(const ModelConfig& config, Precision precision, int64_t batch_size)
      : model(config, precision), data(batch_size, config) {
    model.initialise(0);
    TrainerSettings settings;
    settings.schedule = {"constant", 1e-6, 1 << 30, 0};  // small: the losses stay where they start
    settings.batch_size = static_cast<int>(batch_size);
    settings.shuffled = false;
    trainer = std::make_unique<Trainer>(model, data, settings);
  }

  Classifier model;
  SyntheticSource data;
  std::unique_ptr<Trainer> trainer;
};

StepRunner::StepRunner(const Recipe& recipe, const TaskFacts& task, const std::string& attention, Precision precision)
    : state_(std::make_unique<State>(model_config(recipe, task, parse_attention(attention).canonical()), precision,
                                     recipe.batch_size)) {}

StepRunner::~StepRunner() = default;
void StepRunner::train() { state_->trainer->step(); }
void StepRunner::evaluate() { lra::evaluate(state_->model, state_->data, {}); }
const Classifier& StepRunner::model() const { return state_->model; }
Example StepRunner::example(int64_t number) const { return state_->data.get(number); }

StepBenchResult bench_step(const Recipe& recipe, const TaskFacts& task, const StepBenchSettings& settings) {
  StepRunner runner(recipe, task, settings.attention, settings.precision);
  StepBenchResult result;
  result.peak_gflops = measure_fma_peak(settings.threads);
  Threads threads(settings.threads);
  std::vector<double> seconds;
  threads.run([&] {
    seconds = time_calls(settings, [&] {
      if (settings.training) {
        runner.train();
      } else {
        runner.evaluate();
      }
    });
  });
  // Frequency drifts: the better of before and after, so that the share is not flattered.
  result.peak_gflops = std::max(result.peak_gflops, measure_fma_peak(settings.threads));

  if (settings.profile) result.phases = stop_phases();
  result.thread_seconds = settings.threads * std::accumulate(seconds.begin(), seconds.end(), 0.0);

  std::sort(seconds.begin(), seconds.end());
  const double samples = static_cast<double>(recipe.batch_size);
  const double median = seconds[seconds.size() / 2] / samples;
  result.repeats = static_cast<int>(seconds.size());
  result.ms_per_sample = median * 1e3;
  result.ms_per_sample_min = seconds.front() / samples * 1e3;
  const Example example = runner.example();
  result.flops_per_sample = runner.model().flops(example, settings.training, false);
  result.dense_flops_per_sample = runner.model().flops(example, settings.training, true);
  result.gflops = result.flops_per_sample / median * 1e-9;
  result.share_of_peak = result.gflops / result.peak_gflops;
  result.peak_rss_bytes = peak_rss_bytes();
  return result;
}

Json to_json(const StepBenchResult& result) {
  Json phases = Json::object();
  for (int i = 1; i < kPhaseCount; ++i) {
    if (result.phases[static_cast<size_t>(i)] > 0.0) {
      phases[phase_name(static_cast<Phase>(i))] = result.phases[static_cast<size_t>(i)] / result.thread_seconds;
    }
  }
  Json json = {{"ms_per_sample", result.ms_per_sample},
               {"ms_per_sample_min", result.ms_per_sample_min},
               {"gflops", result.gflops},
               {"peak_gflops", result.peak_gflops},
               {"share_of_peak", result.share_of_peak},
               {"flops_per_sample", result.flops_per_sample},
               {"dense_flops_per_sample", result.dense_flops_per_sample},
               {"peak_rss_bytes", result.peak_rss_bytes},
               {"repeats", result.repeats}};
  if (!phases.empty()) json["phase_shares"] = std::move(phases);
  return json;
}

}  // namespace lra
