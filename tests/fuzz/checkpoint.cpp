// Checkpoints as --evaluate and --init take them: the model's configuration from the metadata, then its tensors.
#include "lib/training/checkpoint.h"

#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

ModelConfig tiny_config() {
  ModelConfig config;
  config.vocabulary = 4;
  config.classes = 2;
  config.max_length = 3;
  config.padded_length = 4;
  config.dim = config.qkv_dim = config.hidden = 2;
  config.heads = config.layers = 1;
  return config;
}

}  // namespace

void checkpoint(Bytes bytes) {
  const std::filesystem::path path = scratch_file("model.safetensors", text_of(bytes));
  accepts([&] {
    const ModelConfig config = read_model_config(path);
    require(ModelConfig::from_json(config.to_json()) == config, "a configuration changes when it is written and read");
    Classifier model(config);
    load_model(path, model);
  });
  // Weights for a model that is there already, and moments.
  static Classifier small(tiny_config());
  accepts([&] { load_model(path, small); });
  std::vector<float> m(small.parameters().size()), v(m);
  accepts([&] { require(load_optimizer(path, small, m, v) >= 0, "a negative step"); });
}

}  // namespace lra::fuzz
