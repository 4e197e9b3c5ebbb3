// Retrieval: do two documents cite each other (ACL Anthology Network, Radev et al. 2013)? Pairs of byte sequences, 2
// classes, vocabulary 512, id = byte + 1.
#pragma once

#include "tasks/task.h"

namespace lra {

class RetrievalTask final : public Task {
 public:
  RetrievalTask();
  DataPlace locate(const DataChoice& choice) const override;
  TaskData read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const override;
  std::string validation_text(const std::string& validation) const override;
};

}  // namespace lra
