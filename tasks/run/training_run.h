// One training run in its folder: trains, evaluates, keeps the best and the last checkpoint, tests both, and writes
// metrics and record. Killed or interrupted at any moment it goes on where its last checkpoint was, to the same bits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/device/batch_model.h"
#include "lib/model/classifier.h"
#include "lib/training/evaluator.h"
#include "lib/training/ranks.h"
#include "lib/training/trainer.h"
#include "lib/util/files.h"
#include "lib/util/log.h"
#include "lib/util/progress.h"
#include "results/record.h"
#include "tasks/examples.h"
#include "tasks/run/run_counters.h"
#include "tasks/run/run_folder.h"
#include "tasks/run/settings.h"
#include "tasks/task.h"

namespace lra {

struct RunCircumstances {
  std::vector<std::string> command;
  int threads = 1;
  ProgressMode progress = ProgressMode::kPlain;
  std::function<bool()> stop;    // a signal came or the time is up
  const Ranks* ranks = nullptr;  // which train together, of which this is rank 0; null: one process
  BatchModel* device = nullptr;  // of --backend cuda; null: the CPU
};

TrainerSettings trainer_settings(const RunSettings& settings);

enum class RunOutcome { kCompleted, kInterrupted, kDiverged };

class TrainingRun {
 public:
  // References must outlive it. Call from inside Threads::run.
  TrainingRun(const Task& task, const RunSettings& settings, const RunCircumstances& circumstances, RunFolder& folder,
              const TaskData& data, DataRecord data_record, Log& log);
  ~TrainingRun();

  // Weights as --seed or --init give them; the earlier run in the folder, if any, goes. Writes checkpoint 0.
  void start();
  // Takes up the folder's last checkpoint. InputError when data or files are not those of the run.
  void resume();

  RunOutcome run();
  // Records why the run could not go on. Never throws: the disk may be full.
  void record_failure(const std::string& error) noexcept;

  const Record& record() const { return record_; }

 private:
  bool evaluation_due() const;
  void train_step(Progress& progress);
  void validate();
  void write_norms();
  void test();
  void test_checkpoint(const Classifier& model, CheckpointMetrics& metrics, bool best);
  enum class Split { kValidation, kTest };
  EvaluationResult evaluate_split(const Classifier& model, Split split, int64_t limit, const char* label,
                                  const std::function<void(const Prediction&)>& on_prediction = {});
  void save();
  void save_record(RunStatus status, const std::string& error = {});
  RunOutcome interrupted();
  RunOutcome diverged(const std::string& what);

  const Task& task_;
  const RunSettings& settings_;
  const RunCircumstances& circumstances_;
  RunFolder& folder_;
  Log& log_;
  std::unique_ptr<DataExamples> train_, validation_, test_;
  Classifier model_;
  std::unique_ptr<Trainer> trainer_;
  LineWriter metrics_, norms_;
  Record record_;
  RunCounters counters_;
  bool best_is_new_ = false;  // the best checkpoint is to be written with the next save
  int64_t saved_step_ = -1;
  bool saved_evaluated_ = false;
  std::chrono::steady_clock::time_point saved_at_, line_at_;
  int64_t line_step_ = 0;  // of the last training line, for samples_per_second
};

}  // namespace lra
