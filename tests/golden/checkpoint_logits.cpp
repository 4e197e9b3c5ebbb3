// checkpoint_logits FOLDER writes, for a few shapes of the model, a checkpoint NAME.safetensors as training would and
// NAME.logits.safetensors with padded token ids (as float32) and the logits our evaluation gives for them.
// tests/reference/check_checkpoint.py compares with PyTorch on the same checkpoint.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>

#include "lib/tensor/safetensors.h"
#include "lib/training/checkpoint.h"
#include "tests/support/examples.h"
#include "tests/support/models.h"

namespace lra {
namespace {

constexpr int kExamples = 6;

std::map<std::string, ModelConfig> shapes() {
  std::map<std::string, ModelConfig> configs;
  configs["softmax"] = small_config();
  ModelConfig& recipe = configs["polynomial"];  // sizes of the recipe
  recipe.attention = "polynomial:power=3,scale=16";
  recipe.max_length = 300;
  ModelConfig& pair = configs["pair-cls"] = small_config();
  pair.pair = true, pair.classes = 2, pair.pooling = "cls";
  ModelConfig& lra = configs["lra-pair"] = pair;
  lra.pooling = "cls-vector", lra.pair_head = "two", lra.init = "lra", lra.positions = "sinusoidal";
  lra.attention_bias = false, lra.gelu = Gelu::kTanh, lra.norm_epsilon = 1e-6f, lra.qkv_dim = 8;
  configs["mean"] = small_config();
  configs["mean"].pooling = "mean";
  return configs;
}

// Ids with padding in the gaps, rows of one width.
std::vector<float> padded(const std::vector<Example>& examples, Sequence Example::*part, int64_t width) {
  std::vector<float> ids(examples.size() * static_cast<size_t>(width));
  for (size_t row = 0; row < examples.size(); ++row) {
    const Sequence& sequence = examples[row].*part;
    for (size_t i = 0; i < sequence.ids.size(); ++i) {
      ids[row * static_cast<size_t>(width) + static_cast<size_t>(sequence.places[i])] =
          static_cast<float>(sequence.ids[i]);
    }
  }
  return ids;
}

void write(const std::filesystem::path& folder, const std::string& name, const ModelConfig& config) {
  Classifier model(config);
  model.initialise(11);
  save_model(folder / (name + ".safetensors"), model);
  const std::vector<Example> examples = random_examples(config, kExamples, 12);
  const int64_t width = config.max_length + (config.pooling == "cls" ? 1 : 0);
  std::vector<float> logits;
  Arena arena;
  for (const Example& example : examples) {
    const ExampleResult result = model.evaluate(example, arena);
    logits.insert(logits.end(), result.logits.begin(), result.logits.end());
  }
  const std::vector<float> ids = padded(examples, &Example::first, width);
  const std::vector<float> ids2 = padded(examples, &Example::second, width);
  std::vector<TensorRef> tensors = {{"ids", {kExamples, width}, ids}, {"logits", {kExamples, config.classes}, logits}};
  if (config.pair) tensors.push_back({"ids2", {kExamples, width}, ids2});
  write_safetensors(folder / (name + ".logits.safetensors"), {}, tensors);
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: checkpoint_logits FOLDER\n");
    return 2;
  }
  try {
    for (const auto& [name, config] : lra::shapes()) lra::write(argv[1], name, config);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkpoint_logits: %s\n", error.what());
    return 1;
  }
  return 0;
}
