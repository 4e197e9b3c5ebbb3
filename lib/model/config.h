// Shape of the classifier: everything a checkpoint needs to be understood without its recipe. Its JSON is the `lra`
// entry of a checkpoint's metadata. Names follow tests/reference/lra_model.py.
#pragma once

#include <string>

#include "lib/ops/activations.h"
#include "lib/util/json.h"

namespace lra {

struct ModelConfig {
  std::string task;     // for the record; the library does not look at it
  int vocabulary = 32;  // rows of the token table; id 0 is padding
  int classes = 10;
  int max_length = 2000;     // longest input in tokens
  int padded_length = 2048;  // rows of the position table, divisor of mean-padded
  int dim = 64;              // E
  int qkv_dim = 64;          // H * D
  int hidden = 128;
  int heads = 2;  // H
  int layers = 2;
  float dropout = 0.1f;
  float attention_dropout = 0.1f;
  std::string pooling = "mean-padded";  // mean-padded | mean | cls (token vocabulary-1 first) | cls-vector
  bool pair = false;
  std::string attention = "softmax";  // canonical spec
  bool attention_bias = true;
  std::string positions = "learned";  // learned | sinusoidal
  Gelu gelu = Gelu::kExact;
  float norm_epsilon = 1e-5f;
  std::string pair_head = "four";      // four: [x, y, xy, x-y] | two: [x, y] and one more linear layer
  std::string init = "nystromformer";  // nystromformer | lra
  std::string pixel_tokens;            // raw | shifted, pictures only; for the record

  int head_dim() const { return qkv_dim / heads; }
  // UsageError naming the field at fault: heads that do not divide qkv_dim, sizes below 1, unknown words, …
  void validate() const;
  Json to_json() const;
  static ModelConfig from_json(const Json& json);  // InputError on unknown or missing keys
  bool operator==(const ModelConfig&) const = default;
};

}  // namespace lra
