// Models and optimizer moments as safetensors files. A file is read and compared with the model whole before anything
// of it is used.
#include "lib/training/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <utility>

#include "lib/tensor/safetensors.h"
#include "lib/util/check.h"
#include "lib/util/json.h"

namespace lra {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

std::span<const float> part_of(std::span<const float> flat, const ParameterInfo& info) {
  return flat.subspan(static_cast<size_t>(info.offset), static_cast<size_t>(info.size));
}

// The tensor NAME of the file, float32 and of the shape wanted.
std::span<const float> tensor_of(const SafetensorsFile& file, const std::filesystem::path& path,
                                 const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) throw InputError("{}: tensor {} is missing", path.string(), name);
  const TensorData& tensor = found->second;
  if (tensor.dtype != "F32") throw InputError("{}: tensor {} is {}, must be F32", path.string(), name, tensor.dtype);
  if (tensor.shape != shape) {
    throw InputError("{}: tensor {} has shape {}, the model's is {}", path.string(), name, shape_text(tensor.shape),
                     shape_text(shape));
  }
  return tensor.floats();
}

void refuse_extra(const SafetensorsFile& file, const std::filesystem::path& path, const std::set<std::string>& known) {
  for (const auto& [name, tensor] : file.tensors) {
    if (!known.contains(name)) throw InputError("{}: tensor {} is not part of the model", path.string(), name);
  }
}

// The file holds every tensor of the layout and no other.
void check_tensors(const SafetensorsFile& file, const std::filesystem::path& path, const ParameterLayout& layout) {
  std::set<std::string> known;
  for (const ParameterInfo& info : layout.all()) {
    const std::span<const float> values = tensor_of(file, path, info.name, info.shape);
    known.insert(info.name);
    for (const std::string& name : info.also) {
      // safetensors.torch.save_model leaves further names of a shared tensor out.
      known.insert(name);
      if (file.tensors.contains(name) && !std::ranges::equal(tensor_of(file, path, name, info.shape), values)) {
        throw InputError("{}: tensors {} and {} are one in the model but differ", path.string(), info.name, name);
      }
    }
  }
  refuse_extra(file, path, known);
}

}  // namespace

void save_model(const std::filesystem::path& path, const Classifier& model) {
  std::vector<TensorRef> tensors;
  for (const ParameterInfo& info : model.layout().all()) {
    const std::span<const float> values = part_of(model.parameters(), info);
    tensors.push_back({info.name, info.shape, values});
    for (const std::string& name : info.also) tensors.push_back({name, info.shape, values});
  }
  write_safetensors(path, {{"format", "pt"}, {"lra", dump_json(model.config().to_json())}}, std::move(tensors));
}

void load_model(const std::filesystem::path& path, Classifier& model) {
  const SafetensorsFile file = read_safetensors(path);
  check_tensors(file, path, model.layout());
  for (const ParameterInfo& info : model.layout().all()) {
    std::ranges::copy(tensor_of(file, path, info.name, info.shape), model.parameters().begin() + info.offset);
  }
}

ModelConfig read_model_config(const std::filesystem::path& path) {
  const SafetensorsFile file = read_safetensors(path);
  const auto found = file.metadata.find("lra");
  if (found == file.metadata.end()) {
    throw InputError("{}: metadata has no entry \"lra\": not a checkpoint of this program", path.string());
  }
  const Json json = parse_json(found->second, path.string() + ": metadata entry \"lra\"");
  ModelConfig config;
  try {
    config = ModelConfig::from_json(json);
  } catch (const Error& error) {
    throw InputError("{}: {}", path.string(), error.what());
  }
  // Before anybody makes a model of these sizes: the file has its tensors.
  check_tensors(file, path, parameter_layout(config));
  return config;
}

void save_optimizer(const std::filesystem::path& path, const Classifier& model, std::span<const float> m,
                    std::span<const float> v, int64_t step) {
  std::vector<TensorRef> tensors;
  for (const ParameterInfo& info : model.layout().all()) {
    if (!info.trained) continue;
    tensors.push_back({"m." + info.name, info.shape, part_of(m, info)});
    tensors.push_back({"v." + info.name, info.shape, part_of(v, info)});
  }
  write_safetensors(path, {{"format", "pt"}, {"step", fmt::format("{}", step)}}, std::move(tensors));
}

int64_t load_optimizer(const std::filesystem::path& path, const Classifier& model, std::span<float> m,
                       std::span<float> v) {
  const SafetensorsFile file = read_safetensors(path);
  std::set<std::string> known;
  std::vector<float> loaded_m(m.size()), loaded_v(v.size());
  for (const ParameterInfo& info : model.layout().all()) {
    if (!info.trained) continue;
    for (const auto& [prefix, loaded] : {std::pair{"m.", &loaded_m}, std::pair{"v.", &loaded_v}}) {
      const std::string name = prefix + info.name;
      std::ranges::copy(tensor_of(file, path, name, info.shape), loaded->begin() + info.offset);
      known.insert(name);
    }
  }
  refuse_extra(file, path, known);
  const auto found = file.metadata.find("step");
  const std::string text = found == file.metadata.end() ? "" : found->second;
  int64_t step = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || stop != text.data() + text.size() || step < 0) {
    throw InputError("{}: metadata entry \"step\" must be a number of updates", path.string());
  }
  std::ranges::copy(loaded_m, m.begin());
  std::ranges::copy(loaded_v, v.begin());
  return step;
}

}  // namespace lra
