// Checkpoints as safetensors files: float32, PyTorch's names and shapes. Bytes hold no time, host or thread count.
#pragma once

#include <filesystem>
#include <span>

#include "lib/model/classifier.h"

namespace lra {

// Metadata: format = "pt", lra = model configuration as JSON. Written beside and renamed.
void save_model(const std::filesystem::path& path, const Classifier& model);
// InputError naming file and tensor on a missing, extra or misshapen one; the model is untouched on error.
void load_model(const std::filesystem::path& path, Classifier& model);
// Configuration from the file's metadata. InputError as of load_model: the file holds the tensors of such a model.
ModelConfig read_model_config(const std::filesystem::path& path);

// Moments of the optimizer: tensors m.NAME and v.NAME of the trained parameters.
void save_optimizer(const std::filesystem::path& path, const Classifier& model, std::span<const float> m,
                    std::span<const float> v, int64_t step);
// Returns the step.
int64_t load_optimizer(const std::filesystem::path& path, const Classifier& model, std::span<float> m,
                       std::span<float> v);

}  // namespace lra
