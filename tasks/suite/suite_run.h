// Runs the cells of a grid, each as a process in its run folder. What is done is left alone, what was interrupted goes
// on, what fails is noted and the rest still runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/util/log.h"
#include "lib/util/progress.h"
#include "tasks/suite/cell.h"
#include "tasks/suite/estimate.h"

namespace lra {

struct SuiteCircumstances {
  std::filesystem::path programs;  // folder of lra-listops and so on
  int threads_per_job = 1, jobs = 1;
  ProgressMode progress = ProgressMode::kPlain;
  std::function<bool()> stop;  // a signal came
};

struct SuiteOutcome {
  size_t done = 0, left = 0;           // left: interrupted or not begun
  std::vector<std::string> failed;     // "listops softmax seed 0: disk full", diverged runs too
  std::vector<std::string> elsewhere;  // cells that another process runs
  bool interrupted = false;
};

// Cells that are done count as such. Never throws for what happens to a cell.
SuiteOutcome run_cells(const std::vector<Cell>& cells, Estimates& estimates, const SuiteCircumstances& circumstances,
                       Log& log);

}  // namespace lra
