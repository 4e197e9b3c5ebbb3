#include "lib/device/encoder.h"

#include "lib/ops/dropout.h"

namespace lra::device {
namespace {

RowDropout dropout_at(const EncoderContext& c, DropoutSite site, int layer) {
  return {c.batch, c.dropout_key, dropout_site(site, layer), c.training ? c.config.dropout : 0.0f};
}

// dy through the dropout of a branch, in `scratch` or as it is.
ConstMatrix branch_gradient(const EncoderContext& c, DropoutSite site, int layer, ConstMatrix dy, Matrix scratch) {
  const RowDropout dropout = dropout_at(c, site, layer);
  if (dropout.rate == 0.0f) return dy;
  dropout_copy(c.on, dropout, dy, scratch);
  return scratch;
}

void norm_forward(const EncoderContext& c, const NormPlan& norm, ConstMatrix x, Matrix y, float* mean, float* rstd) {
  layer_norm_forward(c.on, x, c.parameters + norm.weight, c.parameters + norm.bias, c.config.norm_epsilon, y, mean,
                     rstd);
}

void norm_backward(const EncoderContext& c, const NormPlan& norm, ConstMatrix x, const float* mean, const float* rstd,
                   ConstMatrix dy, Matrix dx, float* gradients) {
  layer_norm_backward(c.on, x, c.parameters + norm.weight, mean, rstd, dy, dx, gradients + norm.weight,
                      gradients + norm.bias);
}

void apply(const EncoderContext& c, const LinearPlan& linear, ConstMatrix x, Matrix y) {
  linear_forward(c.on, x, linear.weight_of(c.parameters), linear.bias_of(c.parameters), y);
}

void apply_backward(const EncoderContext& c, const LinearPlan& linear, ConstMatrix x, ConstMatrix dy, Matrix dx,
                    float* gradients, Write dx_write = Write::kOver) {
  linear_backward(c.on, x, linear.weight_of(c.parameters), dy, dx, linear.weight_of(gradients),
                  linear.bias_of(gradients), dx_write);
}

AttentionCall attention_call(const EncoderContext& c, const BlockState& s, int layer,
                             std::vector<const float*>& pointers) {
  const BlockPlan& plan = c.plan.blocks[static_cast<size_t>(layer)];
  pointers.clear();
  for (const int64_t tensor : plan.kernel_tensors) pointers.push_back(c.parameters + tensor);
  const int64_t width = c.config.qkv_dim;
  return {.batch = c.batch,
          .q = s.qkv.col_block(0, width),
          .k = s.qkv.col_block(width, width),
          .v = s.qkv.col_block(2 * width, width),
          .x = s.attention_normed,
          .parameters = pointers,
          .training = c.training,
          .dropout = c.training && plan.kernel->dropout_applies() ? c.config.attention_dropout : 0.0f,
          .dropout_key = c.dropout_key,
          .layer = layer};
}

// Without a backward pass what can share memory does.
void allocate_block(const EncoderContext& c, int layer, BlockState& s) {
  Scratch& scratch = c.on.scratch;
  const int64_t n = s.x.rows, width = c.config.qkv_dim, dim = c.config.dim, hidden = c.config.hidden;
  s.attention_normed = scratch.matrix(n, dim);
  s.attention_mean = scratch.take<float>(n), s.attention_rstd = scratch.take<float>(n);
  s.qkv = scratch.matrix(n, 3 * width);
  s.heads = scratch.matrix(n, width);
  s.hidden_in = scratch.matrix(n, hidden);
  if (c.training) {
    s.saved = scratch.take<float>(c.attention[static_cast<size_t>(layer)]->saved_floats(n));
    s.middle = scratch.matrix(n, dim);
    s.mlp_normed = scratch.matrix(n, dim);
    s.mlp_mean = scratch.take<float>(n), s.mlp_rstd = scratch.take<float>(n);
    s.hidden = scratch.matrix(n, hidden);
  } else {
    s.saved = nullptr;
    s.middle = s.x;
    s.mlp_normed = s.attention_normed;
    s.mlp_mean = s.attention_mean, s.mlp_rstd = s.attention_rstd;
    s.hidden = s.hidden_in;
  }
}

void block_forward(const EncoderContext& c, int layer, const BlockState& s, Matrix next) {
  const BlockPlan& plan = c.plan.blocks[static_cast<size_t>(layer)];
  const Scratch::Scope scope(c.on.scratch);
  const Matrix branch = c.on.scratch.matrix(s.x.rows, s.x.cols);  // (N, E)

  norm_forward(c, plan.attention_norm, s.x, s.attention_normed, s.attention_mean, s.attention_rstd);
  apply(c, plan.qkv, s.attention_normed, s.qkv);
  std::vector<const float*> pointers;
  c.attention[static_cast<size_t>(layer)]->forward(c.on, attention_call(c, s, layer, pointers), s.heads, s.saved);
  apply(c, plan.output, s.heads, branch);
  dropout_add(c.on, dropout_at(c, DropoutSite::kAttentionOutput, layer), s.x, branch, s.middle);

  norm_forward(c, plan.mlp_norm, s.middle, s.mlp_normed, s.mlp_mean, s.mlp_rstd);
  apply(c, plan.mlp_in, s.mlp_normed, s.hidden_in);
  gelu_dropout_forward(c.on, c.config.gelu, dropout_at(c, DropoutSite::kHidden, layer), s.hidden_in, s.hidden);
  apply(c, plan.mlp_out, s.hidden, branch);
  dropout_add(c.on, dropout_at(c, DropoutSite::kMlpOutput, layer), s.middle, branch, next);
}

// x += dropout(mlp(norm(x))), backward: dx (N, E) enters as the gradient of the output.
void mlp_backward(const EncoderContext& c, int layer, const BlockState& s, Matrix dx, float* gradients) {
  const BlockPlan& plan = c.plan.blocks[static_cast<size_t>(layer)];
  const Scratch::Scope scope(c.on.scratch);
  const Matrix narrow = c.on.scratch.matrix(dx.rows, dx.cols);  // (N, E)
  const Matrix d_hidden = c.on.scratch.matrix(dx.rows, c.config.hidden);

  const ConstMatrix d_branch = branch_gradient(c, DropoutSite::kMlpOutput, layer, dx, narrow);
  apply_backward(c, plan.mlp_out, s.hidden, d_branch, d_hidden, gradients);
  gelu_dropout_backward(c.on, c.config.gelu, dropout_at(c, DropoutSite::kHidden, layer), s.hidden_in, d_hidden,
                        d_hidden);
  apply_backward(c, plan.mlp_in, s.mlp_normed, d_hidden, narrow, gradients);
  norm_backward(c, plan.mlp_norm, s.middle, s.mlp_mean, s.mlp_rstd, narrow, dx, gradients);
}

// x += dropout(attention(norm(x))), backward.
void attention_backward(const EncoderContext& c, int layer, const BlockState& s, Matrix dx, float* gradients) {
  const BlockPlan& plan = c.plan.blocks[static_cast<size_t>(layer)];
  const int64_t n = dx.rows, width = c.config.qkv_dim;
  const Scratch::Scope scope(c.on.scratch);
  const Matrix narrow = c.on.scratch.matrix(n, dx.cols);  // (N, E)
  const Matrix d_heads = c.on.scratch.matrix(n, width);
  const Matrix d_qkv = c.on.scratch.matrix(n, 3 * width);

  const ConstMatrix d_branch = branch_gradient(c, DropoutSite::kAttentionOutput, layer, dx, narrow);
  apply_backward(c, plan.output, s.heads, d_branch, d_heads, gradients);

  std::vector<float*> d_pointers;
  for (size_t i = 0; i < plan.kernel_tensors.size(); ++i) {
    d_pointers.push_back(plan.kernel->parameters()[i].trained ? gradients + plan.kernel_tensors[i] : nullptr);
  }
  c.on.device.fill_zero(narrow);  // attention that reads the layer input adds its part, the products add theirs
  std::vector<const float*> pointers;
  c.attention[static_cast<size_t>(layer)]->backward(c.on, attention_call(c, s, layer, pointers), s.saved,
                                                    {.d_out = d_heads,
                                                     .dq = d_qkv.col_block(0, width),
                                                     .dk = d_qkv.col_block(width, width),
                                                     .dv = d_qkv.col_block(2 * width, width),
                                                     .dx = narrow,
                                                     .d_parameters = d_pointers});
  apply_backward(c, plan.qkv, s.attention_normed, d_qkv, narrow, gradients, Write::kAdd);
  norm_backward(c, plan.attention_norm, s.x, s.attention_mean, s.attention_rstd, narrow, dx, gradients);
}

Pooling pooling_of(const ModelConfig& config) {
  if (config.pooling == "cls" || config.pooling == "cls-vector") return {true, 0.0f};
  return {false, config.pooling == "mean" ? 0.0f : static_cast<float>(config.padded_length)};
}

}  // namespace

EncoderState encode(const EncoderContext& c, Matrix pooled) {
  Scratch& scratch = c.on.scratch;
  const ModelPlan& plan = c.plan;
  const int64_t n = c.batch.tokens;
  EncoderState state;
  state.x = scratch.matrix(n, plan.dim);
  embedding_forward(c.on, c.batch, {c.parameters + plan.token, plan.vocabulary, plan.dim}, c.positions,
                    plan.cls == kNoTensor ? nullptr : c.parameters + plan.cls, state.x);
  dropout_copy(c.on, dropout_at(c, DropoutSite::kEmbedding, 0), state.x, state.x);
  for (int layer = 0; layer < c.config.layers; ++layer) {
    BlockState block{};
    block.x = state.x;
    if (c.training) {
      state.x = scratch.matrix(n, plan.dim);
      allocate_block(c, layer, block);
      block_forward(c, layer, block, state.x);
      state.blocks.push_back(block);
    } else {
      const Scratch::Scope scope(scratch);
      allocate_block(c, layer, block);
      block_forward(c, layer, block, state.x);
    }
  }
  state.mean = scratch.take<float>(n), state.rstd = scratch.take<float>(n);
  const Scratch::Scope scope(scratch);
  const Matrix y = scratch.matrix(n, plan.dim);
  norm_forward(c, plan.final_norm, state.x, y, state.mean, state.rstd);
  pool_forward(c.on, c.batch, pooling_of(c.config), y, pooled);
  return state;
}

void encode_backward(const EncoderContext& c, const EncoderState& state, ConstMatrix d_pooled, float* gradients) {
  Scratch& scratch = c.on.scratch;
  const ModelPlan& plan = c.plan;
  const int64_t n = c.batch.tokens;
  if (n == 0) return;
  const Scratch::Scope scope(scratch);
  const Matrix dx = scratch.matrix(n, plan.dim);
  c.on.device.fill_zero(dx);
  {
    const Scratch::Scope inner(scratch);
    const Matrix dy = scratch.matrix(n, plan.dim);
    pool_backward(c.on, c.batch, pooling_of(c.config), d_pooled, dy);
    norm_backward(c, plan.final_norm, state.x, state.mean, state.rstd, dy, dx, gradients);
  }
  for (int layer = c.config.layers - 1; layer >= 0; --layer) {
    const BlockState& block = state.blocks[static_cast<size_t>(layer)];
    mlp_backward(c, layer, block, dx, gradients);
    attention_backward(c, layer, block, dx, gradients);
  }
  dropout_copy(c.on, dropout_at(c, DropoutSite::kEmbedding, 0), dx, dx);
  Matrix d_position;
  if (plan.position != kNoTensor) d_position = {gradients + plan.position, plan.places, plan.dim};
  embedding_backward(c.on, c.batch, dx, {gradients + plan.token, plan.vocabulary, plan.dim}, d_position,
                     plan.cls == kNoTensor ? nullptr : gradients + plan.cls);
}

}  // namespace lra::device
