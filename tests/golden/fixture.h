// A file of PyTorch's numbers (tests/reference/README.md says what is in it) as our classes take it. Every tensor asked
// for must be there, and unread() names what no one asked for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/model/classifier.h"
#include "lib/tensor/safetensors.h"
#include "lib/training/trainer.h"
#include "lib/util/json.h"

namespace lra {

class Fixture {
 public:
  // fixtures/NAME.safetensors
  explicit Fixture(const std::string& name);

  const Json& facts() const { return facts_; }
  ModelConfig config() const;
  // Trains on the whole of it as one batch, in file order.
  TrainerSettings trainer_settings() const;
  // The rows of `ids` (and `ids2`) with their labels; padding inside a row leaves gaps in the places.
  std::vector<Example> examples();

  bool has(const std::string& tensor) const { return file_.tensors.contains(tensor); }
  std::span<const float> floats(const std::string& tensor);
  const std::vector<int64_t>& shape(const std::string& tensor) const { return file_.tensors.at(tensor).shape; }
  std::vector<std::string> names_below(const std::string& prefix) const;  // without the prefix
  std::vector<std::string> unread() const;

  // What a difference of a float32 program may be: 4 times what PyTorch's own float32 run is off by.
  double tolerance(const std::string& quantity) const;
  double gradient_scale() const { return facts_.at("float32_error").at("grad_scale"); }

 private:
  const TensorData& read(const std::string& tensor);
  std::string name_;
  SafetensorsFile file_;
  Json facts_;
  std::set<std::string> read_;
};

}  // namespace lra
