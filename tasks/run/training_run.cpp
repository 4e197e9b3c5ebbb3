#include "tasks/run/training_run.h"

#include <cmath>

#include "lib/training/checkpoint.h"
#include "lib/training/follow.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "tasks/run/backend.h"
#include "tasks/run/diagnostics.h"
#include "tasks/run/record_parts.h"

namespace lra {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kBest = "checkpoint-best.safetensors";
constexpr const char* kLast = "checkpoint-last.safetensors";
constexpr const char* kOptimizer = "optimizer-last.safetensors";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kPredictions = "predictions-test.jsonl";
constexpr const char* kLog = "log.txt";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Json hashes(const DataRecord& data) {
  return {{"train", data.train->hash}, {"validation", data.validation->hash}, {"test", data.test->hash}};
}

double ratio(double a, double b) { return b > 0 ? a / b : kUnknown; }

// Of the first sitting; older runs did not keep it.
std::optional<std::vector<std::string>> first_command(const Json& state, const std::string& where) {
  const auto found = state.find("command");
  if (found == state.end()) return std::nullopt;
  try {
    return found->get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    throw InputError("{}: command: want a list of words", where);
  }
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

TrainerSettings trainer_settings(const RunSettings& s) {
  return {.schedule = {.form = s.recipe.schedule,
                       .learning_rate = s.recipe.learning_rate,
                       .steps = s.recipe.steps,
                       .warmup = s.recipe.warmup},
          .batch_size = static_cast<int>(s.recipe.batch_size),
          .weight_decay = s.recipe.weight_decay,
          .beta2 = s.recipe.beta2,
          .epsilon = s.recipe.epsilon,
          .clip_norm = s.recipe.clip_norm,
          .seed = static_cast<uint64_t>(s.seed),
          .shuffled = s.order == "shuffled"};
}

TrainingRun::TrainingRun(const Task& task, const RunSettings& settings, const RunCircumstances& circumstances,
                         RunFolder& folder, const TaskData& data, DataRecord data_record, Log& log)
    : task_(task),
      settings_(settings),
      circumstances_(circumstances),
      folder_(folder),
      log_(log),
      model_(settings.model(task.facts()), host_precision(settings.precision, circumstances.device)) {
  const ModelConfig& config = model_.config();
  train_ = std::make_unique<DataExamples>(*data.train, config);
  validation_ = std::make_unique<DataExamples>(*data.validation, config);
  test_ = std::make_unique<DataExamples>(*data.test, config);
  trainer_ =
      std::make_unique<Trainer>(model_, *train_, trainer_settings(settings), circumstances.ranks, circumstances.device);

  record_.task = task_record(config);
  record_.attention = attention_record(config, circumstances.device);
  record_.recipe = recipe_to_json(settings.recipe);
  record_.seed = settings.seed;
  record_.model = model_record(model_);
  record_.data = std::move(data_record);
  record_.protocol = {
      .validation = task.validation_text(settings.recipe.validation), .selection = kSelection, .order = settings.order};
  record_.environment =
      environment_record(circumstances.threads, settings.backend, settings.precision, circumstances.device);
  if (circumstances.ranks != nullptr) record_.environment.ranks = circumstances.ranks->count();
  record_.command = circumstances.command;
}

TrainingRun::~TrainingRun() = default;

void TrainingRun::start() {
  model_.initialise(static_cast<uint64_t>(settings_.seed));
  if (settings_.init) load_model(*settings_.init, model_);
  folder_.clear({kMetrics, kPredictions, kLog, kNormsFile});
  clear_maps(folder_.file(kMapsFolder));
  log_.open(folder_.file(kLog), false);
  metrics_ = LineWriter(folder_.file(kMetrics), false);
  if (settings_.norms) norms_ = LineWriter(folder_.file(kNormsFile), false);
  counters_.started = utc_now();
  save();
  save_record(RunStatus::kRunning);
}

void TrainingRun::resume() {
  const std::string where = folder_.file(kStateFile).string();
  const Json& state = folder_.state();
  counters_ = counters_from_json(state, where);
  if (!state.contains("data") || state["data"] != hashes(record_.data)) {
    throw InputError("{}: the data is not what this run was started with (its hashes differ)", record_.data.source);
  }
  load_model(folder_.file(kLast), model_);
  const int64_t step =
      load_optimizer(folder_.file(kOptimizer), model_, trainer_->first_moment(), trainer_->second_moment());
  if (step != counters_.step) {
    throw InputError("{}: is of step {}, but {} of step {}", folder_.file(kOptimizer).string(), step, where,
                     counters_.step);
  }
  trainer_->restore(step);
  // What the run wrote after this checkpoint will be written again.
  filter_json_lines(folder_.file(kMetrics), [&](const Json& line) {
    if (!line.contains("step") || !line["step"].is_number_integer() || !line.contains("split") ||
        line["split"] == "test") {
      return false;
    }
    const auto at = line["step"].get<int64_t>();
    return at < step || (at == step && (line["split"] == "train" || counters_.evaluated));
  });
  filter_json_lines(folder_.file(kNormsFile), [&](const Json& line) {
    if (!line.contains("step") || !line["step"].is_number_integer()) return false;
    const auto at = line["step"].get<int64_t>();
    const bool keep = at < step || (at == step && counters_.evaluated);
    if (keep) record_.norms.push_back(line);
    return keep;
  });
  log_.open(folder_.file(kLog), true);
  log_.line(fmt::format("resumed at step {} of {}", step, settings_.recipe.steps));
  metrics_ = LineWriter(folder_.file(kMetrics), true);
  if (settings_.norms) norms_ = LineWriter(folder_.file(kNormsFile), true);
  record_.command = first_command(state, where).value_or(circumstances_.command);
  ++counters_.resumed;
  saved_step_ = step;
  save();
  save_record(RunStatus::kRunning);
}

bool TrainingRun::evaluation_due() const {
  const int64_t step = counters_.step, every = settings_.recipe.eval_every;
  return step > 0 && (step == settings_.recipe.steps || (every > 0 && step % every == 0));
}

RunOutcome TrainingRun::run() {
  try {
    Progress progress(log_, circumstances_.progress, "train", 0.0);
    line_at_ = Clock::now();
    line_step_ = counters_.step;
    for (;;) {
      if (evaluation_due() && !counters_.evaluated) {
        progress.finish();
        validate();
        if (!std::isfinite(counters_.last->validation_loss)) return diverged("the validation loss is");
        save();
        save_record(RunStatus::kRunning);
      }
      if (counters_.step == settings_.recipe.steps) break;
      if (circumstances_.stop()) return interrupted();
      const int64_t before = counters_.step;
      train_step(progress);
      if (counters_.step == before) return diverged("loss or gradient is");
      if (!evaluation_due() && seconds_since(saved_at_) >= settings_.checkpoint_every) save();
    }
    progress.finish();
    test();
  } catch (const Interrupted&) {
    return interrupted();
  }
  save_record(RunStatus::kCompleted);
  return RunOutcome::kCompleted;
}

void TrainingRun::train_step(Progress& progress) {
  const Clock::time_point begin = Clock::now();
  const StepResult result = trainer_->step();
  counters_.train_seconds += seconds_since(begin);
  const int64_t step = result.finite ? result.step : counters_.step + 1;
  const int64_t steps = settings_.recipe.steps, batch = settings_.recipe.batch_size;
  if (result.finite) {
    counters_.step = step;
    counters_.evaluated = false;
    counters_.tokens += result.tokens;
    counters_.flops += result.flops;
  }
  const double rate = ratio(static_cast<double>((step - line_step_) * batch), seconds_since(line_at_));
  const std::string details =
      fmt::format("loss {:.4f}  accuracy {:.3f}  {:.1f} samples/s", result.loss, result.accuracy, rate);
  if (step == 1 || step % settings_.log_every == 0 || step == steps || !result.finite) {
    const Json line = {{"split", "train"},
                       {"step", step},
                       {"loss", finite(result.loss)},
                       {"accuracy", finite(result.accuracy)},
                       {"learning_rate", result.learning_rate},
                       {"gradient_norm", finite(result.gradient_norm)},
                       {"samples_per_second", finite(rate)}};
    metrics_.write(dump_json(line));
    progress.plain_line(step, steps, details);
    line_at_ = Clock::now();
    line_step_ = step;
  }
  progress.update(step, steps, details);
}

EvaluationResult TrainingRun::evaluate_split(const Classifier& model, Split split, int64_t limit, const char* label,
                                             const std::function<void(const Prediction&)>& on_prediction) {
  const ProgressMode mode = circumstances_.progress == ProgressMode::kBar ? ProgressMode::kBar : ProgressMode::kNone;
  Progress progress(log_, mode, label, 0.0);
  const Clock::time_point begin = Clock::now();
  EvaluationSettings settings;
  settings.limit = limit;
  settings.batch_size = static_cast<int>(settings_.eval_batch_size);
  settings.stop = circumstances_.stop;
  settings.on_prediction = on_prediction;
  settings.on_progress = [&](int64_t done, int64_t total) { progress.update(done, total); };
  settings.ranks = circumstances_.ranks;
  settings.device = circumstances_.device;
  if (settings.ranks != nullptr) {
    begin_task(*settings.ranks,
               {.kind = RankTask::Kind::kEvaluate,
                .split = static_cast<int32_t>(split),
                .batch_size = settings.batch_size,
                .limit = limit},
               model.parameters());
  }
  EvaluationResult result = evaluate(model, split == Split::kTest ? *test_ : *validation_, settings);
  const double seconds = seconds_since(begin);
  counters_.evaluation_seconds += seconds;
  counters_.evaluated_examples += result.examples;
  line_at_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  return result;
}

void TrainingRun::validate() {
  const int64_t step = counters_.step;
  trainer_->fetch();
  const EvaluationResult result =
      evaluate_split(model_, Split::kValidation, settings_.recipe.eval_examples, "validate");
  const EvaluationRecord evaluation{.split = "validation",
                                    .step = step,
                                    .loss = result.loss,
                                    .accuracy = result.accuracy,
                                    .examples = result.examples};
  metrics_.write(dump_json(evaluation_to_json(evaluation)));
  if (settings_.norms) write_norms();
  counters_.history.push_back(evaluation);
  counters_.evaluated = true;
  counters_.last =
      CheckpointMetrics{.step = step, .validation_accuracy = result.accuracy, .validation_loss = result.loss};
  const bool better = !counters_.best || result.accuracy > counters_.best->validation_accuracy;
  if (better) {
    counters_.best = counters_.last;
    best_is_new_ = true;
  }
  if (circumstances_.progress != ProgressMode::kNone) {
    log_.line(fmt::format("validation at step {}: loss {:.4f}  accuracy {:.4f}{}", step, result.loss, result.accuracy,
                          better ? "  best so far" : ""));
  }
}

void TrainingRun::write_norms() {
  const Clock::time_point begin = Clock::now();
  for (const Json& line : norm_lines(model_, *validation_, counters_.step)) {
    norms_.write(dump_json(line));
    record_.norms.push_back(line);
  }
  line_at_ += Clock::now() - begin;  // no part of the samples per second
}

void TrainingRun::test() {
  record_.best = counters_.best;
  record_.last = counters_.last;
  Classifier best(model_.config(), model_.precision());
  load_model(folder_.file(kBest), best);
  test_checkpoint(best, *record_.best, true);
  if (settings_.maps > 0) {
    write_maps({.model = best,
                .data = *test_,
                .split = "test",
                .limit = settings_.recipe.test_examples,
                .count = settings_.maps,
                .folder = folder_.file(kMapsFolder),
                .stop = circumstances_.stop},
               log_);
  }
  if (*record_.best->step == *record_.last->step) {
    record_.last = record_.best;
  } else {
    test_checkpoint(model_, *record_.last, false);
  }
}

void TrainingRun::test_checkpoint(const Classifier& model, CheckpointMetrics& metrics, bool best) {
  std::string predictions;
  const auto keep = [&](const Prediction& p) {
    const Json line = {
        {"index", p.index}, {"label", p.label}, {"predicted", p.predicted}, {"probability", finite(p.probability)}};
    predictions += dump_json(line) + "\n";
  };
  const EvaluationResult result =
      evaluate_split(model, Split::kTest, settings_.recipe.test_examples, best ? "test best" : "test last",
                     best ? std::function<void(const Prediction&)>(keep) : nullptr);
  if (best) write_file_atomic(folder_.file(kPredictions), predictions);
  metrics.test_accuracy = result.accuracy;
  metrics.test_loss = result.loss;
  metrics.test_examples = result.examples;
  metrics.test_confusion = result.confusion;
  const EvaluationRecord evaluation{.split = "test",
                                    .step = metrics.step,
                                    .loss = result.loss,
                                    .accuracy = result.accuracy,
                                    .examples = result.examples};
  metrics_.write(dump_json(evaluation_to_json(evaluation)));
  if (circumstances_.progress != ProgressMode::kNone) {
    log_.line(fmt::format("test of {} checkpoint, step {}: loss {:.4f}  accuracy {:.4f}",
                          best ? "the best" : "the last", *metrics.step, result.loss, result.accuracy));
  }
}

void TrainingRun::save() {
  const int64_t step = counters_.step;
  trainer_->fetch();
  std::vector<CheckpointFile> files;
  const auto model_file = [&](const char* name) {
    files.push_back({name, step, [&](const std::filesystem::path& path) { save_model(path, model_); }});
  };
  if (best_is_new_) model_file(kBest);
  if (step != saved_step_) {
    model_file(kLast);
    files.push_back({kOptimizer, step, [&](const std::filesystem::path& path) {
                       save_optimizer(path, model_, trainer_->first_moment(), trainer_->second_moment(), step);
                     }});
  }
  Json state = counters_to_json(counters_);
  state["data"] = hashes(record_.data);
  state["settings"] = settings_to_json(settings_);
  state["command"] = record_.command;
  state["position"] = step * settings_.recipe.batch_size;  // rows of the training stream that were used
  folder_.commit(files, state);
  best_is_new_ = false;
  saved_step_ = step;
  saved_evaluated_ = counters_.evaluated;
  saved_at_ = Clock::now();
}

void TrainingRun::save_record(RunStatus status, const std::string& error) {
  record_.status = status;
  record_.error = error.empty() ? std::nullopt : std::optional<std::string>(error);
  if (!record_.best || !record_.best->test_examples) record_.best = counters_.best;
  if (!record_.last || !record_.last->test_examples) record_.last = counters_.last;
  record_.history = counters_.history;
  const double samples = static_cast<double>(counters_.step * settings_.recipe.batch_size);
  record_.speed = {
      .train_seconds = counters_.train_seconds,
      .evaluation_seconds = counters_.evaluation_seconds,
      .samples_per_second = ratio(samples, counters_.train_seconds),
      .tokens_per_second = ratio(static_cast<double>(counters_.tokens), counters_.train_seconds),
      .eval_samples_per_second = ratio(static_cast<double>(counters_.evaluated_examples), counters_.evaluation_seconds),
      .flops_per_sample = ratio(counters_.flops, samples),
      .achieved_gflops = ratio(counters_.flops * 1e-9, counters_.train_seconds),
      .peak_rss_bytes = peak_rss_bytes()};
  record_.started = counters_.started;
  record_.finished = status == RunStatus::kRunning ? std::nullopt : std::optional<std::string>(utc_now());
  record_.resumed = counters_.resumed;
  write_record(folder_.file(kRecordFile), record_);
}

RunOutcome TrainingRun::interrupted() {
  if (saved_step_ != counters_.step || saved_evaluated_ != counters_.evaluated) save();
  save_record(RunStatus::kInterrupted);
  return RunOutcome::kInterrupted;
}

RunOutcome TrainingRun::diverged(const std::string& what) {
  const int64_t step = counters_.evaluated ? counters_.step : counters_.step + 1;
  save_record(RunStatus::kDiverged, fmt::format("diverged at step {}: {} not finite", step, what));
  return RunOutcome::kDiverged;
}

void TrainingRun::record_failure(const std::string& error) noexcept {
  try {
    if (!folder_.state().is_null()) save_record(RunStatus::kFailed, error);
  } catch (...) {
    // The error that is being reported is the one that counts.
  }
}

}  // namespace lra
