// The cells of a grid: one training run each, in a run folder of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tasks/run/options.h"
#include "tasks/run/settings.h"
#include "tasks/suite/grid.h"
#include "tasks/task.h"

namespace lra {

struct Cell {
  std::string task;
  std::string attention;
  int64_t seed = 0;
  std::string sweep;  // "max-length=512", "" where nothing is swept
  CommandLine line;   // of the task program, without what the suite adds (--out, --resume, --threads …)
  std::filesystem::path folder;
  RunSettings settings;  // what the line resolves to

  std::string label() const;  // "listops softmax seed 0"
};

// Where each task's data is: `root` is searched for all tasks that have no path of their own. A task that can generate
// its data does so where the root holds none; a path of its own, as --data of its program, is a promise.
struct SuiteData {
  std::optional<std::string> root;
  std::map<std::string, std::string> paths;  // by task

  // Of a run of these options, nothing where it generates its data. `notes` gets a line where the root holds none.
  std::optional<std::string> of(const Task& task, const RunOptions& options, std::vector<std::string>& notes) const;
};

// All seeds of the first last: what is done early can be compared early. `notes` gets what resolving the recipes says,
// each line once. Every cell's options are checked: UsageError naming task, attention and option.
std::vector<Cell> make_cells(const Grid& grid, const SuiteData& data, const std::filesystem::path& out,
                             std::vector<std::string>& notes);

// UsageError naming cell and option where a folder holds a run that was started with other settings.
void check_folders(const std::vector<Cell>& cells);

// Finds the data of every task in the cells: UsageError or InputError naming the task whose data is missing.
void locate_data(const std::vector<Cell>& cells);

enum class CellStatus { kToDo, kQueued, kRunning, kInterrupted, kDone, kDiverged, kFailed };
const char* status_name(CellStatus status);  // "to do", "running", …

struct CellState {
  CellStatus status = CellStatus::kToDo;
  int64_t step = 0;  // of the last line in metrics.jsonl
  std::optional<double> test_accuracy;
  double seconds = 0.0;  // of training and evaluation
  std::string error;     // of a failed or diverged run, one line
};
// What the cell's run folder says: running where a process holds one of its locks.
CellState cell_state(const Cell& cell);
// What its record says, whoever has the folder.
CellState recorded_state(const Cell& cell);
// Whether a process, of a suite or not, has the cell.
bool cell_taken(const Cell& cell);

// The last training step that the run has logged; 0: none.
int64_t logged_step(const std::filesystem::path& folder);

inline constexpr const char* kCellLockFile = ".suite-lock";

}  // namespace lra
