#include "tasks/suite/suite_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <list>
#include <optional>
#include <thread>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/program.h"
#include "lib/util/signals.h"
#include "results/record.h"
#include "tasks/all_tasks.h"
#include "tasks/run/record_parts.h"
#include "tasks/run/run_folder.h"
#include "tasks/suite/cell_process.h"

namespace lra {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr auto kLook = std::chrono::seconds(1);  // at the steps of running cells

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A record of a run that ended before it could write one.
Record unborn_record(const Cell& cell, int threads) {
  const std::unique_ptr<Task> task = make_task("--tasks", cell.task);
  const RunSettings& s = cell.settings;
  Record record;
  const ModelConfig model = s.model(task->facts());
  record.task = task_record(model);
  record.attention = attention_record(model);
  record.recipe = recipe_to_json(s.recipe);
  record.seed = s.seed;
  record.data.source = s.data.value_or("");
  record.protocol = {task->validation_text(s.recipe.validation), kSelection, s.order};
  record.environment = environment_record(threads, s.backend, s.precision);
  record.command = cell.line.words;
  record.started = utc_now();
  return record;
}

// Makes the record say `failed`. Another process may have the folder, or the disk be full: then it stays as it is.
void record_failure(const Cell& cell, int threads, const std::string& error) noexcept {
  try {
    make_directories(cell.folder);
    const FileLock lock = RunFolder::lock(cell.folder);
    const fs::path path = cell.folder / kRecordFile;
    Record record = fs::exists(path) ? read_record(path) : unborn_record(cell, threads);
    if (record.status == RunStatus::kCompleted || record.status == RunStatus::kDiverged) return;
    record.status = RunStatus::kFailed;
    record.error = error;
    record.finished = utc_now();
    write_record(path, record);
  } catch (const std::exception&) {
    // The error that is being reported is the one that counts.
  }
}

struct RunningCell {
  size_t index;
  FileLock lock;
  CellProcess process;
  Clock::time_point started = Clock::now();
  int64_t first_step = 0, step = 0;
};

class SuiteRun {
 public:
  SuiteRun(const std::vector<Cell>& cells, Estimates& estimates, const SuiteCircumstances& circumstances, Log& log)
      : cells_(cells), estimates_(estimates), circumstances_(circumstances), log_(log) {
    for (const Cell& cell : cells) {
      widths_.task = std::max(widths_.task, cell.task.size() + (cell.sweep.empty() ? 0 : 1 + cell.sweep.size()));
      widths_.attention = std::max(widths_.attention, cell.attention.size());
    }
  }

  SuiteOutcome run() {
    for (size_t i = 0; i < cells_.size(); ++i) {
      const CellState state = recorded_state(cells_[i]);
      if (state.status == CellStatus::kDone || state.status == CellStatus::kDiverged) {
        count_ended(cells_[i], state);
      } else {
        waiting_.push_back(i);
      }
    }
    for (;;) {
      if (circumstances_.stop() && !outcome_.interrupted) {
        outcome_.interrupted = true;
        for (RunningCell& cell : running_) cell.process.stop();
      }
      reap();
      if (!outcome_.interrupted) launch();
      if (running_.empty() && (outcome_.interrupted || waiting_.empty() || only_elsewhere())) break;
      show();
      std::this_thread::sleep_for(kPoll);
    }
    log_.status("");
    for (const size_t i : waiting_) {
      if (outcome_.interrupted) {
        ++outcome_.left;
      } else {
        outcome_.elsewhere.push_back(cells_[i].label());
      }
    }
    return outcome_;
  }

 private:
  void launch() {
    for (auto at = waiting_.begin(); at != waiting_.end() && free_job();) {
      const size_t index = *at;
      std::optional<FileLock> lock = take(cells_[index]);
      if (!lock) {
        ++at;
        continue;
      }
      at = waiting_.erase(at);
      start(index, std::move(*lock));
    }
    if (!running_.empty()) alone_since_ = Clock::now();
  }

  bool free_job() const { return running_.size() < static_cast<size_t>(circumstances_.jobs); }

  // Nothing runs here and no cell could be taken for a while (--status holds a lock for a moment, too).
  bool only_elsewhere() const { return seconds_since(alone_since_) > 1.0; }

  // Nothing where another process has the cell. A folder that can't be written is the program's to complain about.
  static std::optional<FileLock> take(const Cell& cell) {
    if (cell_taken(cell)) return std::nullopt;
    try {
      make_directories(cell.folder);
      return FileLock(cell.folder / kCellLockFile, "the cell " + cell.label());
    } catch (const UsageError&) {
      return std::nullopt;
    } catch (const InputError&) {
      return FileLock();
    }
  }

  void start(size_t index, FileLock lock) {
    const Cell& cell = cells_[index];
    const CellState state = recorded_state(cell);
    if (state.status == CellStatus::kDone || state.status == CellStatus::kDiverged) {  // by another suite, meanwhile
      count_ended(cell, state);
      return;
    }
    std::vector<std::string> words(cell.line.words.begin() + 1, cell.line.words.end());
    words.insert(words.end(), {"--out", cell.folder.string(), "--threads",
                               std::to_string(circumstances_.threads_per_job), "--progress", "none", "--resume"});
    try {
      RunningCell running{index, std::move(lock), CellProcess(circumstances_.programs / ("lra-" + cell.task), words)};
      running.first_step = running.step = state.step;
      running_.push_back(std::move(running));
    } catch (const InputError& error) {
      failed(index, error.what());
    }
  }

  void count_ended(const Cell& cell, const CellState& state) {
    if (state.status == CellStatus::kDone) {
      ++outcome_.done;
    } else {
      outcome_.failed.push_back(cell.label() + ": " + state.error);
    }
  }

  void failed(size_t index, const std::string& error) {
    outcome_.failed.push_back(cells_[index].label() + ": " + error);
    line(index, "failed", error);
    record_failure(cells_[index], circumstances_.threads_per_job, error);
  }

  void reap() {
    for (auto at = running_.begin(); at != running_.end();) {
      if (at->process.running()) {
        ++at;
        continue;
      }
      ended(*at);
      at = running_.erase(at);  // gives the lock back
    }
  }

  void ended(const RunningCell& running) {
    const size_t index = running.index;
    const Cell& cell = cells_[index];
    const CellState state = recorded_state(cell);
    const int code = running.process.exit_code();
    const double seconds = seconds_since(running.started);
    if (code == 0 && state.status == CellStatus::kDone) {
      ++outcome_.done;
      if (running.first_step == 0) estimates_.learn(cell, seconds);
      const std::string accuracy = state.test_accuracy ? fmt::format("test {:.1f} %", 100 * *state.test_accuracy) : "";
      line(index, "done", fmt::format("{:<12} {:>7}", accuracy, format_duration(seconds)));
    } else if (code == kInterruptedExitCode) {
      ++outcome_.left;
      line(index, "interrupted", fmt::format("saved at step {} of {}", state.step, cell.settings.recipe.steps));
    } else if (state.status == CellStatus::kDiverged) {
      outcome_.failed.push_back(cell.label() + ": " + state.error);
      line(index, "diverged", state.error);
    } else {
      failed(index, running.process.error());
    }
  }

  // "listops     softmax                       seed 0  done      test 36.0 %      41.2s"
  void line(size_t index, const char* status, const std::string& details) {
    const Cell& cell = cells_[index];
    const std::string task = cell.sweep.empty() ? cell.task : cell.task + " " + cell.sweep;
    log_.line(fmt::format("{:<{}}  {:<{}}  seed {:<3} {:<11} {}", task, widths_.task, cell.attention, widths_.attention,
                          cell.seed, status, details));
  }

  double seconds_left() const {
    double seconds = 0.0;
    for (const size_t i : waiting_) seconds += estimates_.seconds(cells_[i]);
    for (const RunningCell& cell : running_) {
      const double share =
          static_cast<double>(cell.step) / static_cast<double>(cells_[cell.index].settings.recipe.steps);
      seconds += estimates_.seconds(cells_[cell.index]) * (1 - std::min(1.0, share));
    }
    return seconds / circumstances_.jobs;
  }

  void show() {
    if (Clock::now() - looked_ < kLook) return;
    looked_ = Clock::now();
    std::string now;
    for (RunningCell& cell : running_) {
      cell.step = std::max(cell.step, logged_step(cells_[cell.index].folder));
      now += fmt::format("{}{} {}/{}", now.empty() ? "" : ", ", cells_[cell.index].label(), cell.step,
                         cells_[cell.index].settings.recipe.steps);
    }
    const size_t ended = cells_.size() - waiting_.size() - running_.size();
    const std::string counts = fmt::format("{}/{} cells", ended, cells_.size());
    const std::string left = "left " + format_duration(seconds_left());
    if (circumstances_.progress == ProgressMode::kBar) {
      const double share = static_cast<double>(ended) / static_cast<double>(cells_.size());
      log_.status(fmt::format("{} {}  {}  {}", progress_bar(share), counts, left, now));
    } else if (circumstances_.progress == ProgressMode::kPlain && seconds_since(said_) >= kPlainSeconds) {
      said_ = Clock::now();
      log_.line(fmt::format("{}, {}: {}", counts, left, now));
    }
  }

  static constexpr double kPlainSeconds = 60.0;

  struct Widths {
    size_t task = 0, attention = 0;
  };

  const std::vector<Cell>& cells_;
  Estimates& estimates_;
  const SuiteCircumstances& circumstances_;
  Log& log_;
  Widths widths_;
  SuiteOutcome outcome_;
  std::list<size_t> waiting_;
  std::list<RunningCell> running_;
  Clock::time_point alone_since_ = Clock::now(), looked_{}, said_ = Clock::now();
};

}  // namespace

SuiteOutcome run_cells(const std::vector<Cell>& cells, Estimates& estimates, const SuiteCircumstances& circumstances,
                       Log& log) {
  std::signal(SIGCHLD, SIG_DFL);  // ignored, as some launchers leave it, nothing could be waited for
  return SuiteRun(cells, estimates, circumstances, log).run();
}

}  // namespace lra
