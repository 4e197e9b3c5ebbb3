// Cells of a grid as a job array of Slurm, one cell a task. A task that gets SIGTERM (two minutes before its time is
// over, or when it has to make room) passes it on, its program saves, and the task puts itself back into the queue.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/suite/cell.h"

namespace lra {

struct SlurmSettings {
  std::filesystem::path out;       // folder of the run folders
  std::filesystem::path programs;  // of lra-listops and so on, as the nodes see it
  int threads = 1;                 // cores of a task
  int at_once = 0;                 // tasks at a time, 0: as many as Slurm gives
  std::string options;             // for sbatch, between blanks: "--partition=cpu --time=4:00:00"
};

struct SlurmJob {
  std::string id;
  std::filesystem::path folder;  // script, list of cells, output of the tasks
};

// Writes script and list into a folder of its own below OUT/.slurm and submits it. InputError with what sbatch says,
// UsageError where a path or option can't stand in the script.
SlurmJob submit_array(const std::vector<const Cell*>& cells, const SlurmSettings& settings);

// Puts what Slurm's queue knows of cells that were submitted for `out` into their states: queued or running. InputError
// where jobs were submitted and the queue can't be read.
void add_queue(const std::filesystem::path& out, const std::vector<Cell>& cells, std::vector<CellState>& states);

}  // namespace lra
