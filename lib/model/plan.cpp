// Layout of the classifier's tensors, with the fixed sinusoidal position table (Vaswani et al. 2017), which is made and
// not stored in checkpoints.
#include "lib/model/plan.h"

#include <cmath>
#include <string>
#include <utility>

#include "lib/attention/registry.h"
#include "lib/util/check.h"

namespace lra {
namespace {

NormPlan add_norm(ParameterLayout& layout, const std::string& name, int64_t dim) {
  const int64_t weight = layout.add(name + ".weight", {dim});
  return {weight, layout.add(name + ".bias", {dim})};
}

LinearPlan add_linear(ParameterLayout& layout, const std::string& name, int64_t in, int64_t out, bool bias = true) {
  LinearPlan plan;
  plan.in = in, plan.out = out;
  plan.weight = layout.add(name + ".weight", {out, in});
  if (bias) plan.bias = layout.add(name + ".bias", {out});
  return plan;
}

LinearPlan add_qkv(ParameterLayout& layout, const std::string& attention, int64_t in, int64_t out, bool bias) {
  LinearPlan plan;
  plan.in = in, plan.out = 3 * out;
  plan.weight = layout.add(attention + ".query.weight", {out, in});
  layout.add(attention + ".key.weight", {out, in});
  layout.add(attention + ".value.weight", {out, in});
  if (!bias) return plan;
  plan.bias = layout.add(attention + ".query.bias", {out});
  layout.add(attention + ".key.bias", {out});
  layout.add(attention + ".value.bias", {out});
  return plan;
}

void add_kernel(ParameterLayout& layout, const ModelConfig& config, int layer, BlockPlan& block) {
  block.kernel = make_attention(parse_attention(config.attention),
                                {config.heads, config.head_dim(), config.padded_length, config.dim});
  const auto name_of = [](int i, const KernelParameter& parameter) {
    return fmt::format("encoder.blocks.{}.attention.kernel.{}", i, parameter.name);
  };
  for (const KernelParameter& parameter : block.kernel->parameters()) {
    block.kernel_tensors.push_back(layer > 0 && parameter.shared
                                       ? layout.share(name_of(0, parameter), name_of(layer, parameter))
                                       : layout.add(name_of(layer, parameter), parameter.shape, parameter.trained));
  }
}

// (places, E): sin and cos of place * 10000^(-2k / E) side by side. In float32 throughout, as PyTorch makes its table.
std::vector<float> sinusoidal_table(int64_t places, int64_t dim) {
  std::vector<float> table(static_cast<size_t>(places * dim));
  const float step = static_cast<float>(-std::log(10000.0) / static_cast<double>(dim));
  for (int64_t column = 0; column < dim; column += 2) {
    const float frequency = std::exp(static_cast<float>(column) * step);
    for (int64_t place = 0; place < places; ++place) {
      const float angle = static_cast<float>(place) * frequency;
      table[place * dim + column] = std::sin(angle);
      table[place * dim + column + 1] = std::cos(angle);
    }
  }
  return table;
}

}  // namespace

ModelPlan::ModelPlan(const ModelConfig& config, ParameterLayout& layout)
    : dim(config.dim),
      vocabulary(config.vocabulary),
      places(config.padded_length + (config.pooling == "cls-vector" ? 1 : 0)) {
  if (config.pooling == "cls-vector") cls = layout.add("encoder.cls", {dim});
  token = layout.add("encoder.token_embedding.weight", {vocabulary, dim});
  if (config.positions == "learned") {
    position = layout.add("encoder.position_embedding.weight", {places, dim});
  } else {
    sinusoidal = sinusoidal_table(places, dim);
  }
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string name = fmt::format("encoder.blocks.{}", layer);
    BlockPlan& block = blocks.emplace_back();
    block.attention_norm = add_norm(layout, name + ".attention_norm", dim);
    block.qkv = add_qkv(layout, name + ".attention", dim, config.qkv_dim, config.attention_bias);
    block.output = add_linear(layout, name + ".attention.output", config.qkv_dim, dim, config.attention_bias);
    add_kernel(layout, config, layer, block);
    block.mlp_norm = add_norm(layout, name + ".mlp_norm", dim);
    block.mlp_in = add_linear(layout, name + ".mlp_in", dim, config.hidden);
    block.mlp_out = add_linear(layout, name + ".mlp_out", config.hidden, dim);
  }
  final_norm = add_norm(layout, "encoder.final_norm", dim);
  const bool two = config.pair && config.pair_head == "two";
  head_in = add_linear(layout, "head_in", dim * (config.pair ? (two ? 2 : 4) : 1), config.hidden);
  if (two) head_mid = add_linear(layout, "head_mid", config.hidden, config.hidden / 2);
  head_out = add_linear(layout, "head_out", two ? config.hidden / 2 : config.hidden, config.classes);
}

}  // namespace lra
