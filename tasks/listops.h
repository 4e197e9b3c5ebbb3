// ListOps: the value of nested list operations (Nangia and Bowman 2018), the longest and most structured task of the
// arena. 10 classes, vocabulary 32 of which 15 ids are used (datasets/listops/tokens.h).
#pragma once

#include "tasks/task.h"

namespace lra {

class ListopsTask final : public Task {
 public:
  ListopsTask();
  DataPlace locate(const DataChoice& choice) const override;
  TaskData read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const override;
  std::string validation_text(const std::string& validation) const override;
  std::string text(std::span<const int32_t> ids) const override;
};

}  // namespace lra
