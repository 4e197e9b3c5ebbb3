// Pathfinder: are two marked points joined by a dashed path (Linsley et al. 2018)? Grey pictures row by row, 2 classes.
#pragma once

#include "tasks/task.h"

namespace lra {

class PathfinderTask final : public Task {
 public:
  PathfinderTask();
  DataPlace locate(const DataChoice& choice) const override;
  TaskData read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const override;
  std::string validation_text(const std::string& validation) const override;
};

}  // namespace lra
