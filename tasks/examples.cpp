#include "tasks/examples.h"

#include <utility>

#include "lib/util/check.h"

namespace lra {

DataExamples::DataExamples(const DataSplit& data, const ModelConfig& model)
    : data_(data), pair_(model.pair), cls_token_(model.pooling == "cls" ? model.vocabulary - 1 : 0) {
  check(data.pair() == model.pair, "data and model disagree on pairs");
}

Sequence DataExamples::sequence(std::vector<int32_t> ids) const {
  if (cls_token_ != 0) ids.insert(ids.begin(), cls_token_);
  return make_sequence(ids);
}

Example DataExamples::get(int64_t index) const {
  DataExample data = data_.get(index);
  Example example;
  example.first = sequence(std::move(data.ids));
  if (pair_) example.second = sequence(std::move(data.ids2));
  example.label = data.label;
  return example;
}

}  // namespace lra
