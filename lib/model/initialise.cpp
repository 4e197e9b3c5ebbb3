// Distributions of the two original programs, as tests/reference/lra_model.py has them.
// `nystromformer`: torch.nn.Linear's U(-1/sqrt(in), 1/sqrt(in)) for weights and biases, embeddings N(0, 0.02²).
// `lra`: Xavier-uniform weights (Glorot & Bengio 2010), biases N(0, 1e-6²), tokens N(0, 1), positions N(0, 0.02²); the
// head's weights LeCun normal cut at two standard deviations, its biases 0.
#include "lib/model/initialise.h"

#include <algorithm>
#include <cmath>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/rng.h"

namespace lra {
namespace {

struct Initialiser {
  const ParameterLayout& layout;
  uint64_t seed;
  std::span<float> parameters;

  std::span<float> values(const std::string& name) const {
    const ParameterInfo& info = layout.at(name);
    return parameters.subspan(static_cast<size_t>(info.offset), static_cast<size_t>(info.size));
  }
  Random random(const std::string& name) const { return {seed, RandomStream::kInit, hash_bytes(name)}; }

  void constant(const std::string& name, float value) const { std::ranges::fill(values(name), value); }
  void uniform(const std::string& name, double bound) const {
    Random draw = random(name);
    for (float& value : values(name)) value = static_cast<float>(bound * (2.0 * draw.uniform() - 1.0));
  }
  void normal(const std::string& name, double deviation) const {
    Random draw = random(name);
    for (float& value : values(name)) value = static_cast<float>(deviation * draw.normal());
  }
  // N(0, 1) given |x| <= 2, times scale.
  void cut_normal(const std::string& name, double scale) const {
    Random draw = random(name);
    for (float& value : values(name)) {
      double x = draw.normal();
      while (std::abs(x) > 2.0) x = draw.normal();
      value = static_cast<float>(scale * x);
    }
  }

  void norm(const std::string& name) const {
    constant(name + ".weight", 1.0f);
    constant(name + ".bias", 0.0f);
  }
  void torch_linear(const std::string& name) const {
    const double bound = 1.0 / std::sqrt(static_cast<double>(layout.at(name + ".weight").shape[1]));
    uniform(name + ".weight", bound);
    if (layout.contains(name + ".bias")) uniform(name + ".bias", bound);
  }
  void xavier_linear(const std::string& name) const {
    const auto& shape = layout.at(name + ".weight").shape;
    uniform(name + ".weight", std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])));
    if (layout.contains(name + ".bias")) normal(name + ".bias", 1e-6);
  }
  void lecun_head(const std::string& name) const {
    constexpr double kCutDeviation = 0.87962566103423978;  // of N(0, 1) given |x| <= 2
    const auto in = static_cast<double>(layout.at(name + ".weight").shape[1]);
    cut_normal(name + ".weight", 1.0 / (kCutDeviation * std::sqrt(in)));
    constant(name + ".bias", 0.0f);
  }
};

}  // namespace

void initialise_parameters(const ModelConfig& config, const ModelPlan& plan, const ParameterLayout& layout,
                           uint64_t seed, std::span<float> parameters) {
  const Initialiser start{layout, seed, parameters};
  const bool lra = config.init == "lra";
  if (plan.cls != kNoTensor) start.constant("encoder.cls", 0.0f);
  start.normal("encoder.token_embedding.weight", lra ? 1.0 : 0.02);
  if (plan.position != kNoTensor) start.normal("encoder.position_embedding.weight", 0.02);
  for (size_t layer = 0; layer < plan.blocks.size(); ++layer) {
    const std::string name = fmt::format("encoder.blocks.{}", layer);
    start.norm(name + ".attention_norm");
    start.norm(name + ".mlp_norm");
    for (const char* linear :
         {".attention.query", ".attention.key", ".attention.value", ".attention.output", ".mlp_in", ".mlp_out"}) {
      lra ? start.xavier_linear(name + linear) : start.torch_linear(name + linear);
    }
    const BlockPlan& block = plan.blocks[layer];
    for (size_t i = 0; i < block.kernel_tensors.size(); ++i) {
      const KernelParameter& parameter = block.kernel->parameters()[i];
      if (layer > 0 && parameter.shared) continue;
      const std::string tensor = name + ".attention.kernel." + parameter.name;
      Random draw = start.random(tensor);
      parameter.start(draw, start.values(tensor));
    }
  }
  start.norm("encoder.final_norm");
  for (const char* head : {"head_in", "head_mid", "head_out"}) {
    if (!layout.contains(std::string(head) + ".weight")) continue;
    lra ? start.lecun_head(head) : start.torch_linear(head);
  }
}

}  // namespace lra
