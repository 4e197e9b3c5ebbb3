// lra-suite: trains a grid of tasks, attentions and seeds.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <limits>
#include <numeric>
#include <set>

#include "benchmarks/step_bench.h"
#include "lib/training/threads.h"
#include "lib/util/build_info.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "lib/util/program.h"
#include "lib/util/signals.h"
#include "tasks/suite/slurm.h"
#include "tasks/suite/suite_options.h"
#include "tasks/suite/suite_run.h"

namespace lra {
namespace {

// Time of a training step on a short example, scaled by the work of one of `tokens`.
double time_sample(const RunSettings& settings, const TaskFacts& task, int64_t tokens, int threads) {
  constexpr int64_t kShort = 512;
  Recipe recipe = settings.recipe;
  recipe.max_length = std::min(tokens, kShort);
  recipe.batch_size = 2 * threads;
  StepRunner runner(recipe, task, settings.attention, precision_named(settings.precision));
  double seconds = 0.0;
  Threads(threads).run([&] {
    runner.train();
    const auto start = std::chrono::steady_clock::now();
    runner.train();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  const Example timed = runner.example();
  Example whole = timed;
  for (Sequence* sequence : {&whole.first, &whole.second}) {
    if (sequence->ids.empty()) continue;
    sequence->ids.resize(static_cast<size_t>(tokens), 1);
    sequence->places.resize(static_cast<size_t>(tokens));
    std::iota(sequence->places.begin(), sequence->places.end(), 0);
  }
  const double scale = runner.model().flops(whole, true, false) / runner.model().flops(timed, true, false);
  return seconds / static_cast<double>(recipe.batch_size) * scale;
}

// That this machine can give to a cell.
int threads_of_cell(const SuiteOptions& options) {
  return options.slurm ? std::min(options.threads, default_threads()) : options.threads / options.jobs;
}

std::filesystem::path program_folder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw InputError("cannot find the folder of the programs: /proc/self/exe: {}", error.message());
  return self.parent_path();
}

// One line a cell: what its folder says.
void print_cells(const std::vector<Cell>& cells, const std::vector<CellState>& states, const Estimates* estimates) {
  size_t width = 0;
  for (const Cell& cell : cells) width = std::max(width, cell.label().size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const CellState& state = states[i];
    std::string details;
    if (state.status == CellStatus::kDone && state.test_accuracy) {
      details = fmt::format("test {:.1f} %", 100 * *state.test_accuracy);
    } else if (!state.error.empty()) {
      details = state.error;
    } else if (state.step > 0) {
      details = fmt::format("step {} of {}", state.step, cells[i].settings.recipe.steps);
    }
    if (estimates && state.status != CellStatus::kDone && state.status != CellStatus::kDiverged) {
      details += fmt::format("{}about {}", details.empty() ? "" : ", ", format_duration(estimates->seconds(cells[i])));
    }
    std::cout << fmt::format("  {:<{}}  {:<11}  {}\n", cells[i].label(), width, status_name(state.status), details);
  }
}

void print_counts(const std::vector<CellState>& states) {
  std::string counts;
  for (const CellStatus status :
       {CellStatus::kDone, CellStatus::kRunning, CellStatus::kQueued, CellStatus::kInterrupted, CellStatus::kToDo,
        CellStatus::kDiverged, CellStatus::kFailed}) {
    const auto count =
        std::count_if(states.begin(), states.end(), [&](const CellState& s) { return s.status == status; });
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, status_name(status));
  }
  std::cout << fmt::format("{} cells: {}\n", states.size(), counts);
}

// What there is to do, by task, with the time it takes.
void print_plan(const SuiteOptions& options, const std::vector<Cell>& cells, const std::vector<CellState>& states,
                const Estimates& estimates) {
  std::cout << fmt::format("  {:<11} {:>6} {:>6} {:>6} {:>10} {:>10}\n", "task", "cells", "ended", "to do", "a cell",
                           "together");
  double all = 0.0;
  for (const std::string& task : options.grid.tasks) {
    size_t count = 0, ended = 0;
    double seconds = 0.0;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].task != task) continue;
      ++count;
      if (states[i].status == CellStatus::kDone || states[i].status == CellStatus::kDiverged) {
        ++ended;
      } else {
        const double share = static_cast<double>(states[i].step) / static_cast<double>(cells[i].settings.recipe.steps);
        seconds += estimates.seconds(cells[i]) * (1 - std::min(1.0, share));
      }
    }
    const size_t left = count - ended;
    all += seconds;
    std::cout << fmt::format("  {:<11} {:>6} {:>6} {:>6} {:>10} {:>10}\n", task, count, ended, left,
                             left > 0 ? format_duration(seconds / static_cast<double>(left)) : "-",
                             left > 0 ? format_duration(seconds) : "-");
  }
  if (all == 0.0) return;
  if (options.slurm) {
    std::cout << fmt::format("about {} a task after the other, on {} threads of this machine\n", format_duration(all),
                             threads_of_cell(options));
    return;
  }
  std::cout << fmt::format("about {} on {} thread{}{}\n", format_duration(all / options.jobs), options.threads,
                           options.threads == 1 ? "" : "s",
                           options.jobs == 1
                               ? ""
                               : fmt::format(", {} jobs of {}", options.jobs, options.threads / options.jobs))
            << std::flush;
}

Estimates estimate(const SuiteOptions& options, const std::vector<Cell>& cells, Log& log) {
  const int threads = threads_of_cell(options);
  Progress progress(log, options.progress, "timing a step of each model", 0);
  return {cells,
          [&](const RunSettings& settings, const TaskFacts& task, int64_t tokens) {
            try {
              return time_sample(settings, task, tokens, threads);
            } catch (const Error&) {
              if (!options.slurm) throw;
              return std::numeric_limits<double>::quiet_NaN();  // the nodes may have what this machine lacks
            }
          },
          [&](size_t done) { progress.update(static_cast<int64_t>(done), static_cast<int64_t>(cells.size())); }};
}

// The end of the run in words, and its exit code.
int conclude(const SuiteOptions& options, const SuiteOutcome& outcome, size_t cells) {
  for (const std::string& line : outcome.failed) std::cerr << "lra-suite: " << line << "\n";
  for (const std::string& line : outcome.elsewhere) {
    std::cerr << "lra-suite: " << line << ": left to the process that runs it\n";
  }
  std::cout << fmt::format("{} of {} cells done", outcome.done, cells);
  if (!outcome.failed.empty()) std::cout << fmt::format(", {} failed or diverged", outcome.failed.size());
  if (!outcome.elsewhere.empty()) std::cout << fmt::format(", {} run by another process", outcome.elsewhere.size());
  if (outcome.interrupted) {
    std::cout << "; interrupted, the same command goes on\n";
    return kInterruptedExitCode;
  }
  std::cout << fmt::format("; compare them with lra-compare {}\n", options.out.string());
  return outcome.failed.empty() && outcome.left == 0 ? 0 : 1;
}

// Hands the cells to Slurm that are neither done nor in its queue.
int submit(const SuiteOptions& options, const std::vector<Cell>& cells, const std::vector<CellState>& states) {
  std::vector<const Cell*> left;
  for (size_t i = 0; i < cells.size(); ++i) {
    const CellStatus status = states[i].status;
    if (status == CellStatus::kToDo || status == CellStatus::kInterrupted || status == CellStatus::kFailed) {
      left.push_back(&cells[i]);
    }
  }
  if (left.empty()) {
    std::cout << "nothing to submit: every cell is done or in the queue\n";
    return 0;
  }
  const SlurmJob job = submit_array(left, {.out = options.out,
                                           .programs = program_folder(),
                                           .threads = options.threads,
                                           .at_once = options.jobs,
                                           .options = options.sbatch});
  std::cout << fmt::format("job {} of {} tasks; script and output in {}; --status says how far it is\n", job.id,
                           left.size(), job.folder.string());
  return 0;
}

int run(int argc, char** argv) {
  install_signal_handlers();
  const SuiteOptions options = parse_suite_options(argc, argv);
  if (options.help) {
    std::cout << suite_help();
    return 0;
  }
  if (options.version) {
    std::cout << version_text("lra-suite");
    return 0;
  }
  std::vector<std::string> notes;
  const std::vector<Cell> cells = make_cells(options.grid, options.data, options.out, notes);
  std::vector<CellState> states;
  states.reserve(cells.size());
  for (const Cell& cell : cells) states.push_back(cell_state(cell));
  if (options.status) {
    try {
      add_queue(options.out, cells, states);
    } catch (const InputError& error) {
      std::cerr << "lra-suite: " << error.what() << "\n";  // what the folders say is worth to be seen
    }
    print_cells(cells, states, nullptr);
    print_counts(states);
    return 0;
  }
  check_folders(cells);
  locate_data(cells);

  const Grid& grid = options.grid;
  std::cout << fmt::format(
      "{}{} task{}, {} attention{}, {} seed{}{}, recipe {}, into {}\n", grid.name.empty() ? "" : grid.name + ": ",
      grid.tasks.size(), grid.tasks.size() == 1 ? "" : "s", grid.attentions.size(),
      grid.attentions.size() == 1 ? "" : "s", grid.seeds.size(), grid.seeds.size() == 1 ? "" : "s",
      grid.sweep_option.empty() ? "" : fmt::format(", {} {}s", grid.sweep_values.size(), grid.sweep_option),
      grid.recipe, options.out.string());
  for (const std::string& note : notes) std::cout << "  " << note << "\n";
  std::cout << std::flush;
  Log log;
  Estimates estimates = estimate(options, cells, log);
  print_plan(options, cells, states, estimates);
  if (options.dry_run) {
    print_cells(cells, states, &estimates);
    return 0;
  }
  if (options.slurm) {
    add_queue(options.out, cells, states);
    return submit(options, cells, states);
  }
  StopSignals signals;
  const SuiteOutcome outcome = run_cells(cells, estimates,
                                         {.programs = program_folder(),
                                          .threads_per_job = options.threads / options.jobs,
                                          .jobs = options.jobs,
                                          .progress = options.progress,
                                          .stop = [&] { return signals.raised(); }},
                                         log);
  return conclude(options, outcome, cells.size());
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  return lra::run_program("lra-suite", [&] { return lra::run(argc, argv); });
}
