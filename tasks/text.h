// Text: sentiment of film reviews, byte by byte (Maas et al. 2011, IMDb). 2 classes, vocabulary 512, id = byte + 1.
#pragma once

#include "tasks/task.h"

namespace lra {

class TextTask final : public Task {
 public:
  TextTask();
  DataPlace locate(const DataChoice& choice) const override;
  TaskData read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const override;
  std::string validation_text(const std::string& validation) const override;
};

}  // namespace lra
