// The command line of lra-suite. Options that it does not know go to the cells, whose programs know them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lib/util/progress.h"
#include "tasks/suite/cell.h"
#include "tasks/suite/grid.h"

namespace lra {

struct SuiteOptions {
  Grid grid;
  SuiteData data;
  std::filesystem::path out;
  int jobs = 1, threads = 1;  // threads: of all jobs together
  bool slurm = false;         // jobs: tasks at a time, 0 as many as Slurm gives; threads: of each
  std::string sbatch;         // options for it
  ProgressMode progress = ProgressMode::kPlain;
  bool dry_run = false, status = false, help = false, version = false;
};

// UsageError naming the option at fault, InputError on a grid file that can't be read.
SuiteOptions parse_suite_options(int argc, const char* const* argv);
std::string suite_help();

}  // namespace lra
