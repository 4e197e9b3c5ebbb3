// How long the cells of a grid take: steps times the time of a step, which is measured beforehand, corrected by the
// cells that are done.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tasks/suite/cell.h"

namespace lra {

// Seconds that training takes for one example of so many tokens, on the threads of one job.
using StepTimer = std::function<double(const RunSettings& settings, const TaskFacts& task, int64_t tokens)>;

class Estimates {
 public:
  // Times each model that cells are left of, once, and learns from those that are done.
  Estimates(const std::vector<Cell>& cells, const StepTimer& timer, const std::function<void(size_t done)>& progress);

  double seconds(const Cell& cell) const;
  // A cell took so long.
  void learn(const Cell& cell, double seconds);

 private:
  double uncorrected(const Cell& cell) const;

  struct Taken {
    double estimated = 0.0, real = 0.0;
  };
  std::map<std::string, double> per_sample_;  // by task, attention and length
  std::map<std::string, Taken> taken_;        // by task
};

}  // namespace lra
