#include "tasks/nystromformer_checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/attention/registry.h"
#include "lib/model/classifier.h"
#include "lib/tensor/safetensors.h"
#include "lib/util/check.h"
#include "lib/util/json.h"
#include "tasks/all_tasks.h"

namespace lra {
namespace {

// Parts of a name, there and here; "#" stands for the number of a layer.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"model.embeddings.word_embeddings.", "encoder.token_embedding."},
    {"model.embeddings.position_embeddings.", "encoder.position_embedding."},
    {"model.transformer_#.norm1.", "encoder.blocks.#.attention_norm."},
    {"model.transformer_#.mha.W_q.", "encoder.blocks.#.attention.query."},
    {"model.transformer_#.mha.W_k.", "encoder.blocks.#.attention.key."},
    {"model.transformer_#.mha.W_v.", "encoder.blocks.#.attention.value."},
    {"model.transformer_#.mha.ff.", "encoder.blocks.#.attention.output."},
    {"model.transformer_#.norm2.", "encoder.blocks.#.mlp_norm."},
    {"model.transformer_#.mlpblock.0.", "encoder.blocks.#.mlp_in."},
    {"model.transformer_#.mlpblock.3.", "encoder.blocks.#.mlp_out."},
    {"model.norm.", "encoder.final_norm."},
    {"seq_classifer.mlpblock.0.", "head_in."},
    {"seq_classifer.mlpblock.2.", "head_out."},
};

struct Converted {
  std::string original;  // name in the file
  const TensorData* tensor = nullptr;
};
using Tensors = std::map<std::string, Converted>;  // by our name

Tensors renamed(const SafetensorsFile& file, const std::string& where) {
  Tensors tensors;
  for (const auto& [original, tensor] : file.tensors) {
    const std::string name = name_of_nystromformer(original);
    if (name.empty()) {
      throw InputError(
          "{}: tensor {} is none of the Nystroemformer LRA classifier's, which begin with model. and "
          "seq_classifer.",
          where, shown(original, 80));
    }
    if (tensor.dtype != "F32") throw InputError("{}: tensor {} is {}, must be F32", where, original, tensor.dtype);
    tensors[name] = {original, &tensor};
  }
  return tensors;
}

// Length of a dimension of a matrix.
int64_t size_of(const Tensors& tensors, const std::string& name, size_t dimension, const std::string& where) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw InputError("{}: there is no tensor for {}", where, name);
  const std::vector<int64_t>& shape = found->second.tensor->shape;
  if (shape.size() != 2) {
    throw InputError("{}: tensor {} has shape ({}), must be a matrix", where, found->second.original,
                     fmt::join(shape, ", "));
  }
  return shape[dimension];
}

}  // namespace

std::string name_of_nystromformer(const std::string& name) {
  for (const auto& [there, here] : kNames) {
    const size_t mark = there.find('#');
    std::string layer;
    std::string_view rest = name;
    if (!rest.starts_with(there.substr(0, mark))) continue;
    rest.remove_prefix(std::min(mark, there.size()));
    if (mark != std::string_view::npos) {
      const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
      layer = rest.substr(0, digits);
      rest.remove_prefix(digits);
      const std::string_view behind = there.substr(mark + 1);
      if (layer.empty() || layer.size() > 4 || !rest.starts_with(behind)) continue;
      rest.remove_prefix(behind.size());
    }
    if (rest != "weight" && rest != "bias") continue;
    std::string result(here);
    if (const size_t at = result.find('#'); at != std::string::npos) result.replace(at, 1, layer);
    return result + std::string(rest);
  }
  return {};
}

void require_convertible(const std::string& attention) {
  const AttentionSpec spec = parse_attention(attention);
  if (spec.name != "nystrom" && spec.name != "linformer") return;
  throw UsageError("--attention {}: its own tensors cannot be converted, only checkpoints of an attention without any",
                   spec.name);
}

std::string task_of_nystromformer(const std::filesystem::path& in) {
  const std::string where = in.string();
  const SafetensorsFile file = read_safetensors(in);
  const Tensors tensors = renamed(file, where);
  const int64_t vocabulary = size_of(tensors, "encoder.token_embedding.weight", 0, where);
  const int64_t width = size_of(tensors, "encoder.token_embedding.weight", 1, where);
  const int64_t classes = size_of(tensors, "head_out.weight", 0, where);
  const bool pair = size_of(tensors, "head_in.weight", 1, where) != width;
  std::vector<std::string> fitting;
  for (const std::string& name : task_names()) {
    const TaskFacts facts = make_task("--task", name)->facts();
    if (facts.vocabulary == vocabulary && facts.classes == classes && facts.pair == pair) fitting.push_back(name);
  }
  if (fitting.empty()) {
    throw InputError("{}: no task has {} tokens, {} classes and {} an example", where, vocabulary, classes,
                     pair ? "two documents" : "one sequence");
  }
  if (fitting.size() > 1) {
    throw UsageError("{}: its shapes do not tell the task; want --task {}", where, fmt::join(fitting, " or --task "));
  }
  return fitting.front();
}

void convert_nystromformer(const std::filesystem::path& in, const std::filesystem::path& out, const TaskFacts& task,
                           Recipe recipe, const std::string& attention) {
  const std::string where = in.string();
  const SafetensorsFile file = read_safetensors(in);
  const Tensors tensors = renamed(file, where);
  const int64_t vocabulary = size_of(tensors, "encoder.token_embedding.weight", 0, where);
  const int64_t classes = size_of(tensors, "head_out.weight", 0, where);
  if (vocabulary != task.vocabulary || classes != task.classes) {
    throw InputError("{}: is of {} tokens and {} classes, task {} has {} and {}", where, vocabulary, classes, task.name,
                     task.vocabulary, task.classes);
  }
  recipe.dim = size_of(tensors, "encoder.token_embedding.weight", 1, where);
  recipe.padded_length = size_of(tensors, "encoder.position_embedding.weight", 0, where);
  recipe.hidden = size_of(tensors, "head_in.weight", 0, where);
  recipe.qkv_dim = size_of(tensors, "encoder.blocks.0.attention.query.weight", 0, where);
  recipe.layers = 1;
  while (tensors.contains(fmt::format("encoder.blocks.{}.attention.query.weight", recipe.layers))) ++recipe.layers;
  recipe.max_length = std::min(recipe.max_length, recipe.padded_length - (recipe.pooling == "cls" ? 1 : 0));
  resolve_recipe(recipe, task);

  const ModelConfig config = model_config(recipe, task, attention);
  const ParameterLayout layout = parameter_layout(config);
  std::vector<TensorRef> written;
  for (const ParameterInfo& info : layout.all()) {
    const auto found = tensors.find(info.name);
    if (found == tensors.end()) throw InputError("{}: there is no tensor for {}", where, info.name);
    const TensorData& tensor = *found->second.tensor;
    if (tensor.shape != info.shape) {
      throw InputError("{}: tensor {} has shape ({}), must be ({})", where, found->second.original,
                       fmt::join(tensor.shape, ", "), fmt::join(info.shape, ", "));
    }
    written.push_back({info.name, info.shape, tensor.floats()});
  }
  for (const auto& [name, converted] : tensors) {
    if (!layout.contains(name)) throw InputError("{}: tensor {} is not part of the model", where, converted.original);
  }
  write_safetensors(out, {{"format", "pt"}, {"lra", dump_json(config.to_json())}}, std::move(written));
}

}  // namespace lra
