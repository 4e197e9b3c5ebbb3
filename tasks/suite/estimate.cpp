#include "tasks/suite/estimate.h"

#include <algorithm>

#include "lib/util/check.h"
#include "tasks/all_tasks.h"

namespace lra {

namespace {

// Of the released sets, for estimates only. Tokens: mean of an example, uncut (of each document for pairs); of
// Pathfinder and raw pixels the share that is not black.
struct TypicalData {
  const char* task;
  double tokens, validation, test;
};
constexpr TypicalData kTypical[] = {{"listops", 970, 2000, 2000},
                                    {"text", 1300, 2500, 25000},
                                    {"retrieval", 8000, 18090, 17437},
                                    {"image", 1015, 5000, 10000},
                                    {"pathfinder", 350, 20000, 20000}};
constexpr double kStartSeconds = 2.0;      // of a program until its first step
constexpr double kForwardShare = 1.0 / 3;  // of a training step, for evaluation

const TypicalData& typical(const std::string& task) {
  for (const TypicalData& data : kTypical) {
    if (task == data.task) return data;
  }
  check(false, "no typical data of task {}", task);
  return kTypical[0];
}

int64_t typical_tokens(const RunSettings& s) {
  double tokens = typical(s.task).tokens;
  if (s.task == "pathfinder") tokens *= static_cast<double>(s.size * s.size) / 1024.0;
  if (s.recipe.pixel_tokens == "shifted") tokens = static_cast<double>(s.recipe.max_length);
  return std::max<int64_t>(1, std::min(static_cast<int64_t>(tokens), s.recipe.max_length));
}

double rows(double all, int64_t limit, int64_t examples) {
  if (limit > 0) all = std::min(all, static_cast<double>(limit));
  if (examples > 0) all = std::min(all, static_cast<double>(examples));
  return all;
}

// Examples that a cell trains on, and evaluates in units of them.
double sample_count(const RunSettings& s) {
  const TypicalData& data = typical(s.task);
  const double steps = static_cast<double>(s.recipe.steps);
  const double evaluations = s.recipe.eval_every > 0 ? steps / static_cast<double>(s.recipe.eval_every) : 1.0;
  const double evaluated = evaluations * rows(data.validation, s.limit_eval, s.recipe.eval_examples) +
                           2 * rows(data.test, s.limit_eval, s.recipe.test_examples);
  return steps * static_cast<double>(s.recipe.batch_size) + kForwardShare * evaluated;
}

std::string key(const Cell& cell) {
  return fmt::format("{} {} {} {}", cell.task, cell.sweep, cell.attention, typical_tokens(cell.settings));
}

}  // namespace

Estimates::Estimates(const std::vector<Cell>& cells, const StepTimer& timer,
                     const std::function<void(size_t done)>& progress) {
  std::vector<CellState> states;
  states.reserve(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    progress(i);
    const Cell& cell = cells[i];
    states.push_back(recorded_state(cell));
    if (states[i].status == CellStatus::kDone || states[i].status == CellStatus::kDiverged) continue;
    double& seconds = per_sample_[key(cell)];
    if (seconds == 0.0) {
      seconds = timer(cell.settings, make_task("--tasks", cell.task)->facts(), typical_tokens(cell.settings));
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    if (states[i].status == CellStatus::kDone && states[i].seconds > 0) learn(cells[i], states[i].seconds);
  }
}

double Estimates::uncorrected(const Cell& cell) const {
  return kStartSeconds + per_sample_.at(key(cell)) * sample_count(cell.settings);
}

double Estimates::seconds(const Cell& cell) const {
  const auto taken = taken_.find(cell.task);
  const double correction = taken == taken_.end() ? 1.0 : taken->second.real / taken->second.estimated;
  return uncorrected(cell) * correction;
}

void Estimates::learn(const Cell& cell, double seconds) {
  if (!per_sample_.contains(key(cell))) return;  // a model that was not timed
  Taken& taken = taken_[cell.task];
  taken.estimated += uncorrected(cell);
  taken.real += seconds;
}

}  // namespace lra
