// Image: CIFAR-10 (Krizhevsky 2009) in grey levels, row by row, 1,024 tokens, 10 classes.
#pragma once

#include "tasks/task.h"

namespace lra {

class ImageTask final : public Task {
 public:
  ImageTask();
  DataPlace locate(const DataChoice& choice) const override;
  TaskData read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const override;
  std::string validation_text(const std::string& validation) const override;
};

}  // namespace lra
