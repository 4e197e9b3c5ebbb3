// The classifier: encoder of one or two sequences (both by the same encoder), head of linear and ReLU layers, cross
// entropy. The head works on one row: batches exist only above, as examples side by side.
#include "lib/model/classifier.h"

#include <algorithm>
#include <utility>

#include "lib/model/encoder.h"
#include "lib/model/initialise.h"
#include "lib/model/plan.h"
#include "lib/ops/activations.h"
#include "lib/ops/bfloat16.h"
#include "lib/ops/cross_entropy.h"
#include "lib/ops/linear.h"
#include "lib/util/check.h"
#include "lib/util/phases.h"

namespace lra {
namespace {

// Activations of the head, one row each, in the arena.
struct HeadState {
  Matrix in;      // (1, parts * E) what the encoder gives
  Matrix hidden;  // (1, hidden) after ReLU
  Matrix middle;  // (1, hidden / 2) after ReLU, pair_head "two" only
  Matrix logits;  // (1, classes)
};

// in = [x, y, xy, x-y] or [x, y]; the halves of `in` already hold x and y.
void combine_pair(const ModelPlan& plan, Matrix in) {
  if (in.cols == 2 * plan.dim) return;
  const float *x = in.data, *y = in.data + plan.dim;
  float *product = in.data + 2 * plan.dim, *difference = in.data + 3 * plan.dim;
  for (int64_t i = 0; i < plan.dim; ++i) {
    product[i] = x[i] * y[i];
    difference[i] = x[i] - y[i];
  }
}

// d_in becomes the gradients of x and y in its first two parts.
void combine_pair_backward(const ModelPlan& plan, ConstMatrix in, Matrix d_in) {
  if (in.cols == 2 * plan.dim) return;
  const float *x = in.data, *y = in.data + plan.dim;
  const float *d_product = d_in.data + 2 * plan.dim, *d_difference = d_in.data + 3 * plan.dim;
  float *dx = d_in.data, *dy = d_in.data + plan.dim;
  for (int64_t i = 0; i < plan.dim; ++i) {
    dx[i] += d_product[i] * y[i] + d_difference[i];
    dy[i] += d_product[i] * x[i] - d_difference[i];
  }
}

void head_forward(const ModelPlan& plan, const float* parameters, Arena& arena, HeadState& s) {
  const auto layer = [&](const LinearPlan& linear, ConstMatrix x) {
    const Matrix y = arena.matrix(1, linear.out);
    linear_forward(x, linear.weight_of(parameters), linear.bias_of(parameters), y);
    return y;
  };
  s.hidden = layer(plan.head_in, s.in);
  relu_forward(s.hidden, s.hidden);
  if (plan.head_mid.exists()) {
    s.middle = layer(plan.head_mid, s.hidden);
    relu_forward(s.middle, s.middle);
  }
  s.logits = layer(plan.head_out, plan.head_mid.exists() ? s.middle : s.hidden);
}

// Returns the gradient of s.in, in the arena.
Matrix head_backward(const ModelPlan& plan, const float* parameters, const HeadState& s, ConstMatrix d_logits,
                     float* gradients, Arena& arena) {
  const auto layer = [&](const LinearPlan& linear, ConstMatrix x, ConstMatrix dy) {
    const Matrix dx = arena.matrix(1, linear.in);
    linear_backward(x, linear.weight_of(parameters), dy, dx, linear.weight_of(gradients), linear.bias_of(gradients));
    return dx;
  };
  Matrix d = layer(plan.head_out, plan.head_mid.exists() ? s.middle : s.hidden, d_logits);
  if (plan.head_mid.exists()) {
    relu_backward(s.middle, d, d);
    d = layer(plan.head_mid, s.hidden, d);
  }
  relu_backward(s.hidden, d, d);
  return layer(plan.head_in, s.in, d);
}

ExampleResult result_of(ConstMatrix logits, int label, float weight, Matrix d_logits) {
  const std::span<const float> row(logits.data, static_cast<size_t>(logits.cols));
  ExampleResult result;
  result.loss = cross_entropy(row, label, weight, {d_logits.data, static_cast<size_t>(d_logits.cols)});
  result.predicted = static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
  result.logits.assign(row.begin(), row.end());
  return result;
}

// Weights of the encoder's linear layers, each applied to every token.
double token_weights(const ModelPlan& plan) {
  double weights = 0.0;
  for (const BlockPlan& block : plan.blocks) {
    for (const LinearPlan& linear : {block.qkv, block.output, block.mlp_in, block.mlp_out}) {
      weights += static_cast<double>(linear.in) * static_cast<double>(linear.out);
    }
  }
  return weights;
}

double head_weights(const ModelPlan& plan) {
  double weights = 0.0;
  for (const LinearPlan& linear : {plan.head_in, plan.head_mid, plan.head_out}) {
    weights += static_cast<double>(linear.in) * static_cast<double>(linear.out);
  }
  return weights;
}

}  // namespace

ParameterLayout parameter_layout(const ModelConfig& config) {
  config.validate();
  ParameterLayout layout;
  const ModelPlan plan(config, layout);
  return layout;
}

struct Classifier::Plan : ModelPlan {
  using ModelPlan::ModelPlan;
};

Classifier::Classifier(const ModelConfig& config, Precision precision) : config_(config), precision_(precision) {
  config_.validate();
  if (precision == Precision::kBfloat16) require_bfloat16();
  plan_ = std::make_unique<Plan>(config_, layout_);
  parameters_.resize(static_cast<size_t>(layout_.size()));
}

Classifier::~Classifier() = default;
Classifier::Classifier(Classifier&&) noexcept = default;

const AttentionKernel& Classifier::kernel(int layer) const { return *plan_->blocks[layer].kernel; }

void Classifier::initialise(uint64_t seed) { initialise_parameters(config_, *plan_, layout_, seed, parameters_); }

namespace {

void check_label(const Example& example, const ModelConfig& config) {
  check(example.label >= 0 && example.label < config.classes, "label {} with {} classes", example.label,
        config.classes);
}

void check_backward(const Example& example, const ModelConfig& config, std::span<const float> gradients,
                    const ParameterLayout& layout) {
  check_label(example, config);
  check(static_cast<int64_t>(gradients.size()) == layout.size(), "{} gradients for {} parameters", gradients.size(),
        layout.size());
}

// Forward and backward pass of one example: gradients of weight * loss are added. first_id: the example in dropout
// counters; the sequences of a pair draw different masks.
ExampleResult run_backward(const EncoderContext& context, const Example& example, float weight, uint32_t first_id,
                           float* gradients) {
  const ModelPlan& plan = context.plan;
  const float* parameters = context.parameters;
  Arena& arena = context.arena;
  const bool pair = context.config.pair;
  Arena::Scope scope(arena);
  HeadState head;
  head.in = arena.matrix(1, plan.head_in.in);
  const SequenceState first = encode(context, example.first, first_id, head.in.data);
  SequenceState second;
  if (pair) {
    second = encode(context, example.second, first_id + 1, head.in.data + plan.dim);
    combine_pair(plan, head.in);
  }
  const auto [result, d_in] = [&] {
    const PhaseScope phase(Phase::kHead);
    head_forward(plan, parameters, arena, head);
    const Matrix d_logits = arena.matrix(1, context.config.classes);
    ExampleResult trained = result_of(head.logits, example.label, weight, d_logits);
    return std::pair(trained, head_backward(plan, parameters, head, d_logits, gradients, arena));
  }();
  if (pair) {
    combine_pair_backward(plan, head.in, d_in);
    encode_backward(context, second, d_in.data + plan.dim, gradients);
  }
  encode_backward(context, first, d_in.data, gradients);
  return result;
}

}  // namespace

ExampleResult Classifier::evaluate(const Example& example, Arena& arena, const Fork* fork,
                                   AttentionObserver* observer) const {
  check_label(example, config_);
  Arena::Scope scope(arena);
  const EncoderContext context{.config = config_,
                               .plan = *plan_,
                               .parameters = parameters_.data(),
                               .arena = arena,
                               .precision = precision_,
                               .fork = fork,
                               .observer = observer};
  HeadState head;
  head.in = arena.matrix(1, plan_->head_in.in);
  {
    Arena::Scope inner(arena);
    encode(context, example.first, 0, head.in.data);
  }
  if (config_.pair) {
    Arena::Scope inner(arena);
    encode(context, example.second, 1, head.in.data + plan_->dim);
  }
  const PhaseScope phase(Phase::kHead);
  if (config_.pair) combine_pair(*plan_, head.in);
  head_forward(*plan_, parameters_.data(), arena, head);
  return result_of(head.logits, example.label, 1.0f, {});
}

ExampleResult Classifier::train(const Example& example, float weight, const DropoutSource& dropout,
                                std::span<float> gradients, Arena& arena, const Fork* fork) const {
  check_backward(example, config_, gradients, layout_);
  const EncoderContext context{.config = config_,
                               .plan = *plan_,
                               .parameters = parameters_.data(),
                               .training = true,
                               .keep = true,
                               .dropout_key = dropout.key,
                               .arena = arena,
                               .precision = precision_,
                               .fork = fork};
  return run_backward(context, example, weight, config_.pair ? 2 * dropout.example : dropout.example, gradients.data());
}

ExampleResult Classifier::differentiate(const Example& example, std::span<float> gradients, Arena& arena,
                                        AttentionObserver* observer) const {
  check_backward(example, config_, gradients, layout_);
  const EncoderContext context{.config = config_,
                               .plan = *plan_,
                               .parameters = parameters_.data(),
                               .keep = true,
                               .arena = arena,
                               .precision = precision_,
                               .observer = observer};
  return run_backward(context, example, 1.0f, 0, gradients.data());
}

double Classifier::flops(const Example& example, bool training, bool dense) const {
  const int64_t extra = config_.pooling == "cls-vector" ? 1 : 0;
  const double per_weight = training ? 6.0 : 2.0;
  double total = per_weight * head_weights(*plan_);
  for (const Sequence* sequence : {&example.first, config_.pair ? &example.second : nullptr}) {
    if (sequence == nullptr) continue;
    const int64_t tokens = static_cast<int64_t>(sequence->ids.size()) + extra;
    total += per_weight * token_weights(*plan_) * static_cast<double>(tokens);
    for (const BlockPlan& block : plan_->blocks) {
      total += dense ? block.kernel->dense_flops(tokens, training)
                     : block.kernel->flops(tokens, training, training ? config_.attention_dropout : 0.0f);
    }
  }
  return total;
}

}  // namespace lra
