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

struct TimedCall {
  double seconds;
  double peak_gflops;  // mean of the FMA peak right before and right after the call
};

// Times calls after one that is not counted. Between them the FMA peak is measured: on a machine that is shared, or
// whose clock moves, both change within seconds, and only a step and the peak at its side make a share.
std::vector<TimedCall> time_calls(const StepBenchSettings& settings, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr double kPeakSeconds = 0.05;
  call();
  std::vector<TimedCall> calls;
  const auto peak_now = [&] {
    return settings.device != nullptr ? 0.0 : measure_fma_peak(settings.threads, kPeakSeconds);
  };
  double total = 0.0, peak = peak_now();
  if (settings.profile) start_phases();
  while (static_cast<int>(calls.size()) < settings.repeats || total < settings.seconds) {
    const auto start = Clock::now();
    call();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double after = peak_now();
    calls.push_back({seconds, (peak + after) / 2});
    total += seconds;
    peak = after;
  }
  return calls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

struct StepRunner::State {
  State(const ModelConfig& config, Precision precision, int64_t batch_size, BatchModel* on)
      : model(config, precision), data(batch_size, config), device(on) {
    model.initialise(0);
    TrainerSettings settings;
    settings.schedule = {"constant", 1e-6, 1 << 30, 0};  // small: the losses stay where they start
    settings.batch_size = static_cast<int>(batch_size);
    settings.shuffled = false;
    trainer = std::make_unique<Trainer>(model, data, settings, nullptr, device);
  }

  Classifier model;
  SyntheticSource data;
  BatchModel* device;
  std::unique_ptr<Trainer> trainer;
};

StepRunner::StepRunner(const Recipe& recipe, const TaskFacts& task, const std::string& attention, Precision precision,
                       BatchModel* device)
    : state_(std::make_unique<State>(model_config(recipe, task, parse_attention(attention).canonical()), precision,
                                     recipe.batch_size, device)) {}

StepRunner::~StepRunner() = default;
void StepRunner::train() { state_->trainer->step(); }
void StepRunner::evaluate() {
  EvaluationSettings settings;
  settings.device = state_->device;
  lra::evaluate(state_->model, state_->data, settings);
}
const Classifier& StepRunner::model() const { return state_->model; }
Example StepRunner::example(int64_t number) const { return state_->data.get(number); }

StepBenchResult bench_step(const Recipe& recipe, const TaskFacts& task, const StepBenchSettings& settings) {
  StepRunner runner(recipe, task, settings.attention, settings.precision, settings.device);
  StepBenchResult result;
  Threads threads(settings.threads);
  std::vector<TimedCall> calls;
  threads.run([&] {
    calls = time_calls(settings, [&] {
      if (settings.training) {
        runner.train();
      } else {
        runner.evaluate();
      }
    });
  });
  if (settings.profile) result.phases = stop_phases();

  const Example example = runner.example();
  const bool dense = settings.device != nullptr && !settings.device->linear();
  result.flops_per_sample = runner.model().flops(example, settings.training, dense);
  result.dense_flops_per_sample = runner.model().flops(example, settings.training, true);
  const double samples = static_cast<double>(recipe.batch_size);
  std::vector<double> milliseconds, peaks, shares;
  for (const TimedCall& call : calls) {
    result.thread_seconds += settings.threads * call.seconds;
    milliseconds.push_back(call.seconds / samples * 1e3);
    peaks.push_back(call.peak_gflops);
    shares.push_back(result.flops_per_sample * samples / call.seconds * 1e-9 / call.peak_gflops);
  }
  result.repeats = static_cast<int>(calls.size());
  result.ms_per_sample = median(milliseconds);
  result.ms_per_sample_min = *std::min_element(milliseconds.begin(), milliseconds.end());
  result.gflops = result.flops_per_sample / result.ms_per_sample * 1e-6;
  result.peak_gflops = median(peaks);
  result.share_of_peak = settings.device != nullptr ? 0.0 : median(shares);
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
               {"peak_gflops", result.peak_gflops > 0.0 ? Json(result.peak_gflops) : Json(nullptr)},
               {"share_of_peak", result.peak_gflops > 0.0 ? Json(result.share_of_peak) : Json(nullptr)},
               {"flops_per_sample", result.flops_per_sample},
               {"dense_flops_per_sample", result.dense_flops_per_sample},
               {"peak_rss_bytes", result.peak_rss_bytes},
               {"repeats", result.repeats}};
  if (!phases.empty()) json["phase_shares"] = std::move(phases);
  return json;
}

}  // namespace lra
