#include "tasks/suite/cell.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <tuple>

#include "datasets/find.h"
#include "lib/attention/registry.h"
#include "lib/util/check.h"
#include "lib/util/program.h"
#include "results/record.h"
#include "tasks/all_tasks.h"
#include "tasks/run/run_folder.h"

namespace lra {

namespace fs = std::filesystem;

namespace {

// What lra-suite sets itself, or what makes no sense for all cells of a grid.
void refuse_cell_options(const CommandLine& line) {
  const std::pair<const char*, const char*> refused[] = {
      {"seed", "want --seeds"},
      {"attention", "want it as an option of the suite"},
      {"out", "the suite sets it"},
      {"resume", "the suite always resumes"},
      {"force", "remove the folder"},
      {"evaluate", "the suite trains"},
      {"split", "the suite trains"},
      {"max_time", "interrupt the suite instead, it goes on where it was"},
      {"threads", "want it as an option of the suite"},
      {"progress", "want it as an option of the suite"},
      {"data", "want it as an option of the suite"},
      {"recipe", "want it as an option or key of the grid"}};
  for (const auto& [name, instead] : refused) {
    if (!line.has(name)) continue;
    throw UsageError("--{}: not for the cells of a grid; {}", option_name(name), instead);
  }
}

CommandLine parse(const TaskFacts& facts, const std::vector<std::string>& words) {
  std::vector<const char*> argv{"lra-suite"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line("lra-suite", facts, static_cast<int>(argv.size()), argv.data());
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// What is common to the cells of a grid.
class CellMaker {
 public:
  CellMaker(const Grid& grid, const SuiteData& data, const fs::path& out) : grid_(grid), data_(data), out_(out) {}

  Cell make(const Task& task, const Grid::Value* value, const std::string& attention, int64_t seed,
            std::vector<std::string>& notes) {
    const TaskFacts& facts = task.facts();
    Cell cell;
    cell.task = facts.name;
    cell.attention = attention;
    cell.seed = seed;
    std::vector<std::string> own = grid_.options;
    const auto task_options = grid_.task_options.find(facts.name);
    if (task_options != grid_.task_options.end()) append(own, task_options->second);
    if (value != nullptr) {
      cell.sweep = grid_.sweep_option + "=" + value->text;
      own.push_back(value->word);
      refuse_swept(parse(facts, grid_.words));
    }
    append(own, grid_.words);
    const CommandLine own_line = parse(facts, own);
    refuse_cell_options(own_line);
    std::vector<std::string> words{"--attention", attention, "--recipe", grid_.recipe, "--seed", std::to_string(seed)};
    if (const auto path = data_of(task, own_line.options, notes)) append(words, {"--data", *path});
    append(words, own);
    cell.line = parse(facts, words);
    cell.settings = resolve_settings(facts, cell.line, notes);
    if (selected_on_test(recipe_to_json(cell.settings.recipe))) notes.emplace_back(kSelectedOnTest);
    cell.folder = run_folder(cell.sweep.empty() ? out_ : out_ / cell.sweep, facts, cell.line);
    return cell;
  }

 private:
  // Looked for once, not for every cell.
  std::optional<std::string> data_of(const Task& task, const RunOptions& options, std::vector<std::string>& notes) {
    const auto key = std::make_tuple(task.facts().name, options.size, options.level);
    const auto known = found_.find(key);
    return known != found_.end() ? known->second : found_[key] = data_.of(task, options, notes);
  }

  // A word of the command line would give all values of the sweep the same option.
  void refuse_swept(const CommandLine& line) const {
    const std::string key = field_key(grid_.sweep_option);
    const bool changed = std::any_of(line.changes.begin(), line.changes.end(),
                                     [&](const RecipeChange& change) { return change.key == key; });
    if (changed || line.has(key)) throw UsageError("--{}: the grid {} sweeps it", grid_.sweep_option, grid_.name);
  }

  const Grid& grid_;
  const SuiteData& data_;
  const fs::path& out_;
  std::map<std::tuple<std::string, int64_t, std::string>, std::optional<std::string>> found_;  // by task, size, level
};

// Whether another process has the lock; looks without taking it for longer than that.
bool held(const fs::path& lock) {
  const int descriptor = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

// The first field in which the two differ, as "steps: 100 here, 200 there"; "" where they are one run.
std::string difference(const RunSettings& here, const RunSettings& there) {
  const auto differs = [](const std::string& name, const std::string& a, const std::string& b) {
    return fmt::format("{} is {} here and {} there", name, a.empty() ? "not given" : a, b.empty() ? "not given" : b);
  };
  for (const std::string& name : field_names<Recipe>()) {
    const std::string a = get_field(here.recipe, name), b = get_field(there.recipe, name);
    if (a != b) return differs(name, a, b);
  }
  for (const std::string& name : field_names<RunSettings>()) {
    if (may_change(name)) continue;
    const std::string a = get_field(here, name), b = get_field(there, name);
    if (a != b) return differs(name, a, b);
  }
  return {};
}

}  // namespace

std::string Cell::label() const {
  return fmt::format("{}{}{} {} seed {}", task, sweep.empty() ? "" : " ", sweep, attention, seed);
}

std::optional<std::string> SuiteData::of(const Task& task, const RunOptions& options,
                                         std::vector<std::string>& notes) const {
  const auto own = paths.find(task.facts().name);
  if (own != paths.end()) return own->second;
  if (!root || !task.facts().generates) return root;
  try {
    task.locate({.path = *root, .size = static_cast<int>(options.size), .level = options.level});
  } catch (const NothingFound&) {
    notes.push_back(fmt::format("no data of it under {}: it is generated", *root));
    return std::nullopt;
  } catch (const InputError&) {
    // locate_data says what is wrong with it
  }
  return root;
}

std::vector<Cell> make_cells(const Grid& grid, const SuiteData& data, const fs::path& out,
                             std::vector<std::string>& notes) {
  for (const auto& [task, path] : data.paths) {
    if (std::find(grid.tasks.begin(), grid.tasks.end(), task) == grid.tasks.end()) {
      throw UsageError("--data {}={}: the grid has no task {}", task, path, task);
    }
  }
  CellMaker maker(grid, data, out);
  std::vector<const Grid::Value*> sweep;
  for (const Grid::Value& value : grid.sweep_values) sweep.push_back(&value);
  if (sweep.empty()) sweep.push_back(nullptr);
  std::vector<Cell> cells;
  for (const int64_t seed : grid.seeds) {
    for (const std::string& name : grid.tasks) {
      const std::unique_ptr<Task> task = make_task("--tasks", name);
      for (const Grid::Value* value : sweep) {
        for (const std::string& attention : grid.attentions) {
          std::vector<std::string> said;
          try {
            cells.push_back(maker.make(*task, value, attention, seed, said));
          } catch (const UsageError& error) {
            throw UsageError("{} {}: {}", name, attention, error.what());
          }
          for (const std::string& line : said) {
            const std::string note = fmt::format("{}: {}", name, line);
            if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
          }
        }
      }
    }
  }
  return cells;
}

void check_folders(const std::vector<Cell>& cells) {
  for (const Cell& cell : cells) {
    const fs::path path = cell.folder / kStateFile;
    std::error_code unknown;
    if (!fs::exists(path, unknown)) continue;
    RunSettings saved;
    try {
      const Json json = read_json(path);
      saved =
          settings_from_json(make_task("--tasks", cell.task)->facts(), json.at("state").at("settings"), path.string());
    } catch (const std::exception&) {
      continue;  // the program says what is wrong with it, and the rest still runs
    }
    const std::string differs = difference(cell.settings, saved);
    if (!differs.empty()) {
      throw UsageError("{}: {}, in the run that {} holds; want the same settings or another --out", cell.label(),
                       differs, cell.folder.string());
    }
  }
}

void locate_data(const std::vector<Cell>& cells) {
  std::vector<std::string> seen;
  for (const Cell& cell : cells) {
    if (std::find(seen.begin(), seen.end(), cell.task) != seen.end()) continue;
    seen.push_back(cell.task);
    const RunSettings& s = cell.settings;
    try {
      make_task("--tasks", cell.task)
          ->locate({.path = s.data ? std::optional<fs::path>(*s.data) : std::nullopt,
                    .size = static_cast<int>(s.size),
                    .level = s.level,
                    .generated_count = s.generated});
    } catch (const UsageError& error) {
      throw UsageError("{}: {}; or leave the task out of --tasks", cell.task, error.what());
    } catch (const InputError& error) {
      throw InputError("{}: {}; --data {}=PATH names another place", cell.task, error.what(), cell.task);
    }
  }
}

const char* status_name(CellStatus status) {
  switch (status) {
    case CellStatus::kToDo: return "to do";
    case CellStatus::kQueued: return "queued";
    case CellStatus::kRunning: return "running";
    case CellStatus::kInterrupted: return "interrupted";
    case CellStatus::kDone: return "done";
    case CellStatus::kDiverged: return "diverged";
    case CellStatus::kFailed: return "failed";
  }
  return "?";
}

int64_t logged_step(const fs::path& folder) {
  constexpr std::streamoff kTail = 4096;
  std::ifstream file(folder / "metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return 0;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTail));
  int64_t step = 0;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);  // the first may be half a line
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer()) {
      step = std::max(step, json["step"].get<int64_t>());
    }
  }
  return step;
}

bool cell_taken(const Cell& cell) {
  return held(cell.folder / kCellLockFile) || held(cell.folder / RunFolder::kLockFile);
}

CellState cell_state(const Cell& cell) {
  const bool taken = cell_taken(cell);
  CellState state = recorded_state(cell);
  if (taken) state.status = CellStatus::kRunning;
  return state;
}

CellState recorded_state(const Cell& cell) {
  CellState state;
  std::error_code unknown;
  const fs::path path = cell.folder / kRecordFile;
  if (!fs::exists(path, unknown)) return state;
  state.step = logged_step(cell.folder);
  Record record;
  try {
    record = read_record(path);
  } catch (const std::exception& error) {
    state.status = CellStatus::kFailed;
    state.error = one_line(error.what());
    return state;
  }
  if (record.best) state.test_accuracy = record.best->test_accuracy;
  state.seconds = record.speed.train_seconds + record.speed.evaluation_seconds;
  state.error = one_line(record.error.value_or(""));
  switch (record.status) {
    case RunStatus::kCompleted: state.status = CellStatus::kDone; break;
    case RunStatus::kDiverged: state.status = CellStatus::kDiverged; break;
    case RunStatus::kFailed: state.status = CellStatus::kFailed; break;
    case RunStatus::kRunning:
    case RunStatus::kInterrupted: state.status = CellStatus::kInterrupted; break;
  }
  return state;
}

}  // namespace lra
