// Binds data to the model: examples of a data set as the classifier takes them.
#pragma once

#include "datasets/example.h"
#include "lib/model/config.h"
#include "lib/model/example.h"

namespace lra {

// Padding is dropped, places are kept. Pooling `cls` puts the token vocabulary - 1 at place 0 and moves the others on.
class DataExamples final : public ExampleSource {
 public:
  // `data` must outlive it.
  DataExamples(const DataSplit& data, const ModelConfig& model);

  int64_t size() const override { return data_.size(); }
  Example get(int64_t index) const override;

 private:
  Sequence sequence(std::vector<int32_t> ids) const;

  const DataSplit& data_;
  bool pair_;
  int32_t cls_token_;  // 0: none
};

}  // namespace lra
