#include "tasks/run/program.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "lib/attention/registry.h"
#include "lib/training/follow.h"
#include "lib/training/ranks.h"
#include "lib/training/threads.h"
#include "lib/util/build_info.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "lib/util/program.h"
#include "lib/util/signals.h"
#include "tasks/run/backend.h"
#include "tasks/run/evaluation_run.h"
#include "tasks/run/options.h"
#include "tasks/run/record_parts.h"
#include "tasks/run/settings.h"
#include "tasks/run/training_run.h"

namespace lra {

namespace {

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.2f} %", 100 * share) : "-"; }

void print_summary(const Record& record, const std::filesystem::path& folder) {
  std::cout << fmt::format("{}  {}  recipe {}", record.task.name, record.attention.spec,
                           record.recipe.at("name").get<std::string>());
  if (record.seed) std::cout << fmt::format("  seed {}", *record.seed);
  if (selected_on_test(record.recipe)) std::cout << "  " << kSelectedOnTest;
  std::cout << "\n";
  const auto print = [](const char* name, const std::optional<CheckpointMetrics>& m) {
    if (!m || !m->step) return;
    std::cout << fmt::format("  {:<8}step {:<8}validation {:<10}test {:<10}({} rows)\n", name, *m->step,
                             percent(m->validation_accuracy), percent(m->test_accuracy),
                             m->test_examples ? std::to_string(*m->test_examples) : "no");
  };
  print("best", record.best);
  print("last", record.last);
  if (!record.best && !record.history.empty()) {
    const EvaluationRecord& e = record.history.front();
    std::cout << fmt::format("  {:<8}accuracy {}  loss {:.4f}  ({} rows)\n", e.split, percent(e.accuracy), e.loss,
                             e.examples);
  }
  std::cout << "  time    ";
  if (record.speed.train_seconds > 0) {
    std::cout << fmt::format("training {} ({:.1f} samples/s), ", format_duration(record.speed.train_seconds),
                             record.speed.samples_per_second);
  }
  std::cout << fmt::format("evaluation {}\n", format_duration(record.speed.evaluation_seconds));
  std::cout << "  record  " << (folder / kRecordFile).string() << "\n";
}

// Cores that this process may use, shared with the other ranks here unless the launcher has already done so.
int threads_of_rank() {
  const int threads = default_threads();
  const bool bound = threads < static_cast<int>(std::thread::hardware_concurrency());
  return bound ? threads : std::max(1, threads / Ranks::on_this_machine());
}

// The first message from rank 0.
struct RankStart {
  int64_t settings_size = 0;  // bytes of JSON that follow; 0: rank 0 ends, and so do the others
};

// One program run: what it needs from beginning to end.
class TaskProgram {
 public:
  TaskProgram(std::string program, const Task& task, CommandLine line, const Ranks& ranks)
      : program_(std::move(program)), task_(task), line_(std::move(line)), ranks_(ranks) {
    const RunOptions& options = line_.options;
    circumstances_.command = line_.words;
    circumstances_.threads = static_cast<int>(options.threads > 0 ? options.threads : threads_of_rank());
    circumstances_.progress = progress_mode(options.progress);
    if (!options.max_time.empty()) {
      deadline_ = std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(parse_duration("--max-time", options.max_time)));
    }
  }

  int run() {
    if (!ranks_.leads()) return follow_rank_0();
    if (ranks_.count() > 1) circumstances_.ranks = &ranks_;
    try {
      const int code = line_.has("evaluate") ? evaluate() : train();
      release_ranks();
      return code;
    } catch (const std::exception& error) {
      log_.file_line(program_ + ": " + error.what());
      if (!ranks_at_work_) {
        release_ranks();
        throw;
      }
      // The others wait for a part of the work that was under way.
      std::cerr << one_line(fmt::format("{}: {}", program_, error.what())) << std::endl;
      const auto* own = dynamic_cast<const Error*>(&error);
      ranks_.abort(own != nullptr ? own->exit_code() : 1);
    }
  }

 private:
  bool time_is_up() const { return deadline_ && std::chrono::steady_clock::now() >= *deadline_; }

  // What the other ranks need to begin: the settings, or that there is nothing to do.
  void start_ranks(const RunSettings& settings) {
    if (ranks_.count() == 1) return;
    std::string text = dump_json(settings_to_json(settings));
    RankStart start{.settings_size = std::ssize(text)};
    ranks_.broadcast(std::span(&start, 1));
    ranks_.broadcast(std::span(text));
    ranks_started_ = true;
  }

  void release_ranks() {
    if (ranks_.count() == 1) return;
    if (ranks_started_) {
      begin_task(ranks_, {.kind = RankTask::Kind::kEnd}, {});
    } else {
      RankStart start;
      ranks_.broadcast(std::span(&start, 1));
    }
  }

  // Reads the same data, then works for rank 0, which decides, reports and writes; the exit code, too, is its alone.
  int follow_rank_0() {
    const StopSignals signals;
    RankStart start;
    ranks_.broadcast(std::span(&start, 1));
    if (start.settings_size == 0) return 0;
    try {
      std::string text(static_cast<size_t>(start.settings_size), '\0');
      ranks_.broadcast(std::span(text));
      const RunSettings settings = settings_from_json(task_.facts(), parse_json(text, "settings"), "rank 0");
      Log quiet(Log::Quiet{});
      circumstances_.progress = ProgressMode::kNone;
      const TaskData data = task_.read(locate(settings), data_request(settings), quiet, circumstances_.progress);
      const ModelConfig config = settings.model(task_.facts());
      const std::unique_ptr<BatchModel> device = make_backend(settings.backend, settings.precision, config);
      Classifier model(config, host_precision(settings.precision, device.get()));
      const DataExamples train(*data.train, model.config()), validation(*data.validation, model.config()),
          test(*data.test, model.config());
      Trainer trainer(model, train, trainer_settings(settings), &ranks_, device.get());
      const ExampleSource* const splits[] = {&validation, &test};  // in the order of TrainingRun::Split
      Threads threads(circumstances_.threads);
      threads.run([&] { follow(ranks_, model, trainer, splits, device.get()); });
      return 0;
    } catch (const std::exception& error) {
      std::cerr << one_line(fmt::format("{}: rank {}: {}", program_, ranks_.rank(), error.what())) << std::endl;
      ranks_.abort(1);
    }
  }

  DataPlace locate(const RunSettings& settings) const {
    return task_.locate({.path = settings.data ? std::optional<std::filesystem::path>(*settings.data) : std::nullopt,
                         .size = static_cast<int>(settings.size),
                         .level = settings.level,
                         .generated_count = settings.generated});
  }

  int evaluate() {
    if (ranks_.count() > 1) throw UsageError("--evaluate: done by one process, not by {} ranks", ranks_.count());
    Threads threads(circumstances_.threads);
    std::filesystem::path folder;
    std::optional<Record> record;
    StopSignals signals;
    circumstances_.stop = [&] { return signals.raised() || time_is_up(); };
    try {
      threads.run([&] { record = run_evaluation(task_, line_, circumstances_, log_, folder); });
    } catch (const Interrupted&) {
      log_.line(program_ + ": interrupted, no record written");
      return kInterruptedExitCode;
    }
    print_summary(*record, folder);
    if (record->status == RunStatus::kDiverged) {
      throw InputError("{}: the loss is not finite", line_.options.evaluate);
    }
    return 0;
  }

  int train() {
    const RunOptions& options = line_.options;
    const TaskFacts& facts = task_.facts();
    if (line_.has("split")) throw UsageError("--split: only with --evaluate");
    if (options.resume && options.force) throw UsageError("--resume and --force: want one of the two");
    const std::filesystem::path path =
        options.out.empty() ? run_folder(kRunsFolder, facts, line_) : std::filesystem::path(options.out);
    // What the command line alone decides comes first, then what costs little; the folder is created last.
    std::optional<RunFolder> folder;
    RunSettings settings;
    const bool resuming = options.resume && std::filesystem::exists(path / kStateFile);
    if (resuming) {
      folder.emplace(path, RunFolder::Use::kResume);
      const Json& state = folder->state();
      if (!state.is_object() || !state.contains("settings")) {
        throw InputError("{}: settings are missing", folder->file(kStateFile).string());
      }
      settings = resume_settings(facts, line_, state["settings"], path);
      if (finished(path)) return 0;
    } else {
      std::vector<std::string> notes;
      settings = resolve_settings(facts, line_, notes);
      for (const std::string& note : notes) log_.line(note);
    }
    check_ranks(settings.recipe.batch_size, ranks_.count());
    device_ = make_backend(settings.backend, settings.precision, settings.model(facts));
    circumstances_.device = device_.get();
    const RunFolder::Use use = options.resume  ? RunFolder::Use::kResume
                               : options.force ? RunFolder::Use::kForce
                                               : RunFolder::Use::kNew;
    if (!folder && std::filesystem::exists(path)) folder.emplace(path, use);
    const DataPlace place = locate(settings);
    if (!folder) folder.emplace(path, use);
    const TaskData data = task_.read(place, data_request(settings), log_, circumstances_.progress);
    for (const DataSplit* split : {data.train.get(), data.validation.get(), data.test.get()}) {
      if (split->size() == 0) {
        throw InputError("{}: the {} split has no good row", place.source,
                         split == data.train.get()        ? "training"
                         : split == data.validation.get() ? "validation"
                                                          : "test");
      }
    }
    return train_on(settings, *folder, resuming, place, data);
  }

  DataRequest data_request(const RunSettings& settings) const {
    DataRequest request;
    request.max_length = settings.recipe.max_length;
    request.limit_train = settings.limit_train;
    request.limit_eval = settings.limit_eval;
    request.strict = settings.strict;
    request.validation = settings.recipe.validation;
    request.pixel_tokens = settings.recipe.pixel_tokens.value_or("");
    request.threads = circumstances_.threads;
    return request;
  }

  // Says so and prints the result where the run in the folder is complete.
  bool finished(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path / kRecordFile)) return false;
    const Record record = read_record(path / kRecordFile);
    if (record.status != RunStatus::kCompleted) return false;
    log_.line("the run in " + path.string() + " is finished");
    print_summary(record, path);
    return true;
  }

  int train_on(const RunSettings& settings, RunFolder& folder, bool resuming, const DataPlace& place,
               const TaskData& data) {
    DataRecord data_part = data_record(place, data, settings.limit_train, settings.limit_eval);
    for (const std::string& text : data_lines(data_part)) log_.line(text);
    log_.line(fmt::format(
        "{}: {}, recipe {}, seed {}, {} steps, {} threads{}, into {}{}", settings.task, settings.attention,
        settings.recipe.name, settings.seed, settings.recipe.steps, circumstances_.threads,
        ranks_.count() > 1 ? fmt::format(" in each of {} processes", ranks_.count()) : "", folder.path().string(),
        selected_on_test(recipe_to_json(settings.recipe)) ? fmt::format("; {}", kSelectedOnTest) : ""));
    start_ranks(settings);
    Threads threads(circumstances_.threads);
    StopSignals signals;
    circumstances_.stop = [&] { return signals.raised() || time_is_up(); };
    TrainingRun run(task_, settings, circumstances_, folder, data, std::move(data_part), log_);
    RunOutcome outcome = RunOutcome::kCompleted;
    try {
      threads.run([&] {
        resuming ? run.resume() : run.start();
        ranks_at_work_ = ranks_.count() > 1;
        outcome = run.run();
        ranks_at_work_ = false;
      });
    } catch (const std::exception& error) {
      run.record_failure(error.what());
      throw;
    }
    if (outcome == RunOutcome::kDiverged) {
      throw InputError("{}; the record is {}", *run.record().error, folder.file(kRecordFile).string());
    }
    if (outcome == RunOutcome::kInterrupted) {
      log_.line(fmt::format("{}: {}; saved, go on with --resume --out {}", program_,
                            signals.raised() ? "interrupted by a signal" : "--max-time is over",
                            folder.path().string()));
      return kInterruptedExitCode;
    }
    print_summary(run.record(), folder.path());
    return 0;
  }

  const std::string program_;
  const Task& task_;
  const CommandLine line_;
  Log log_;
  const Ranks& ranks_;
  bool ranks_started_ = false, ranks_at_work_ = false;
  std::unique_ptr<BatchModel> device_;
  RunCircumstances circumstances_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
};

}  // namespace

int run_task_program(const std::string& program, const Task& task, int argc, char** argv) {
  return run_program(program, [&] {
    install_signal_handlers();
    const Ranks ranks;
    CommandLine line;
    try {
      line = parse_command_line(program, task.facts(), argc, argv);
    } catch (const UsageError&) {
      if (ranks.leads()) throw;
      return 0;  // rank 0 says it for all
    }
    if (!ranks.leads() && (line.help || line.version || line.options.attention == "list")) return 0;
    if (line.help) {
      std::cout << help_text(program, task.facts());
      return 0;
    }
    if (line.version) {
      std::cout << version_text(program);
      return 0;
    }
    if (line.options.attention == "list") {
      std::cout << attention_list();
      return 0;
    }
    return TaskProgram(program, task, std::move(line), ranks).run();
  });
}

}  // namespace lra
