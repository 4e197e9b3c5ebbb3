// Encoder of tests/reference/lra_model.py, a sequence at a time. Dropout masks are drawn again in the backward pass
// instead of being kept; what else a block's backward needs is kept: 4 E + 4 H D + 2 hidden floats a token and block
// (3 KiB at the recipe's sizes) and the row statistics of norms and attention. No N x N matrix among them.
#include "lib/model/encoder.h"

#include <algorithm>
#include <cstring>

#include "lib/ops/activations.h"
#include "lib/ops/dropout.h"
#include "lib/ops/embedding.h"
#include "lib/ops/layer_norm.h"
#include "lib/ops/linear.h"
#include "lib/ops/pooling.h"
#include "lib/util/check.h"
#include "lib/util/phases.h"

namespace lra {
namespace {

void copy(ConstMatrix from, Matrix to) {
  std::copy_n(from.data, from.rows * from.cols, to.data);  // both without gaps
}

void fill_zero(Matrix x) { std::fill_n(x.data, x.rows * x.cols, 0.0f); }

// The dropout of one sequence.
struct Dropper {
  const EncoderContext& c;
  uint32_t example;

  float rate() const { return c.training ? c.config.dropout : 0.0f; }
  DropoutKey key(DropoutSite site, int layer) const { return {c.dropout_key, dropout_site(site, layer), example}; }

  // y = x + dropout(branch); y may be x.
  void residual(DropoutSite site, int layer, ConstMatrix x, ConstMatrix branch, Matrix y) const {
    const PhaseScope phase(Phase::kElementwise);
    if (y.data != x.data) copy(x, y);
    dropout_add(key(site, layer), rate(), branch, y);
  }
  // The gradient of a branch: dy through its dropout, in `scratch` or as it is.
  ConstMatrix branch_gradient(DropoutSite site, int layer, ConstMatrix dy, Matrix scratch) const {
    if (rate() == 0.0f) return dy;
    const PhaseScope phase(Phase::kElementwise);
    dropout_copy(key(site, layer), rate(), dy, scratch);
    return scratch;
  }
};

float attention_dropout(const EncoderContext& c, const BlockPlan& plan) {
  return c.training && plan.kernel->dropout_applies() ? c.config.attention_dropout : 0.0f;
}

AttentionInput attention_input(const EncoderContext& c, const BlockPlan& plan, const BlockState& s,
                               std::span<const int32_t> places, uint32_t example, int layer,
                               std::span<const float*> pointers) {
  for (size_t i = 0; i < pointers.size(); ++i) pointers[i] = c.parameters + plan.kernel_tensors[i];
  const int64_t width = c.config.qkv_dim;
  AttentionInput in;
  in.q = s.qkv.col_block(0, width);
  in.k = s.qkv.col_block(width, width);
  in.v = s.qkv.col_block(2 * width, width);
  in.x = s.attention_normed;
  in.places = places;
  in.parameters = pointers;
  in.training = c.training;
  in.dropout = attention_dropout(c, plan);
  in.dropout_key = c.dropout_key;
  in.example = example;
  in.layer = layer;
  in.precision = c.precision;
  in.fork = c.fork;
  return in;
}

void norm_forward(const EncoderContext& c, const NormPlan& norm, ConstMatrix x, Matrix y, float* mean, float* rstd) {
  const PhaseScope phase(Phase::kNorm);
  layer_norm_forward(x, c.parameters + norm.weight, c.parameters + norm.bias, c.config.norm_epsilon, y, mean, rstd);
}

void norm_backward(const EncoderContext& c, const NormPlan& norm, ConstMatrix x, const float* mean, const float* rstd,
                   ConstMatrix dy, Matrix dx, float* gradients) {
  const PhaseScope phase(Phase::kNorm);
  layer_norm_backward(x, c.parameters + norm.weight, mean, rstd, dy, dx, gradients + norm.weight,
                      gradients + norm.bias);
}

void apply_linear(const EncoderContext& c, const LinearPlan& linear, ConstMatrix x, Matrix y) {
  const PhaseScope phase(Phase::kLinear);
  if (c.precision == Precision::kBfloat16) {
    linear_forward_bfloat16(x, linear.weight_of(c.parameters), linear.bias_of(c.parameters), y, c.arena);
  } else {
    linear_forward(x, linear.weight_of(c.parameters), linear.bias_of(c.parameters), y);
  }
}

void apply_linear_backward(const EncoderContext& c, const LinearPlan& linear, ConstMatrix x, ConstMatrix dy, Matrix dx,
                           float* gradients, Write dx_write = Write::kOver) {
  const PhaseScope phase(Phase::kLinear);
  const ConstMatrix weight = linear.weight_of(c.parameters);
  if (c.precision == Precision::kBfloat16) {
    linear_backward_bfloat16(x, weight, dy, dx, dx_write, linear.weight_of(gradients), linear.bias_of(gradients),
                             c.arena);
  } else {
    linear_backward(x, weight, dy, dx, linear.weight_of(gradients), linear.bias_of(gradients), dx_write);
  }
}

// Takes what a block's backward pass needs from the arena; s.x is set. Without a backward pass what can share memory
// does.
void allocate_block(const EncoderContext& c, const BlockPlan& plan, BlockState& s) {
  Arena& arena = c.arena;
  const int64_t n = s.x.rows, width = c.config.qkv_dim, dim = c.config.dim, hidden = c.config.hidden;
  s.attention_normed = arena.matrix(n, dim);
  s.attention_mean = arena.floats(n), s.attention_rstd = arena.floats(n);
  s.qkv = arena.matrix(n, 3 * width);
  s.heads = arena.matrix(n, width);
  s.hidden_in = arena.matrix(n, hidden);
  if (c.keep) {
    s.kernel_saved = arena.floats(plan.kernel->saved_floats(n, attention_dropout(c, plan)));
    s.middle = arena.matrix(n, dim);
    s.mlp_normed = arena.matrix(n, dim);
    s.mlp_mean = arena.floats(n), s.mlp_rstd = arena.floats(n);
    s.hidden = arena.matrix(n, hidden);
  } else {
    s.kernel_saved = nullptr;
    s.middle = s.x;
    s.mlp_normed = s.attention_normed;
    s.mlp_mean = s.attention_mean, s.mlp_rstd = s.attention_rstd;
    s.hidden = s.hidden_in;
  }
}

// next (N, E): the block's output; where nothing is kept it is the input's memory.
void block_forward(const EncoderContext& c, int layer, const SequenceState& sequence, BlockState& s, Matrix next) {
  const BlockPlan& plan = c.plan.blocks[layer];
  const Dropper drop{c, sequence.example};
  Arena::Scope scope(c.arena);
  const Matrix branch = c.arena.matrix(s.x.rows, s.x.cols);  // (N, E)

  norm_forward(c, plan.attention_norm, s.x, s.attention_normed, s.attention_mean, s.attention_rstd);
  apply_linear(c, plan.qkv, s.attention_normed, s.qkv);
  const auto pointers = arena_array<const float*>(c.arena, static_cast<int64_t>(plan.kernel_tensors.size()));
  {
    const AttentionInput in = attention_input(c, plan, s, sequence.places, sequence.example, layer, pointers);
    if (c.observer != nullptr) {
      Arena::Scope inner(c.arena);
      c.observer->attention(*plan.kernel, in, c.arena);
    }
    const PhaseScope phase(Phase::kScores);
    plan.kernel->forward(in, s.heads, s.kernel_saved, c.arena);
  }
  apply_linear(c, plan.output, s.heads, branch);
  drop.residual(DropoutSite::kAttentionOutput, layer, s.x, branch, s.middle);

  norm_forward(c, plan.mlp_norm, s.middle, s.mlp_normed, s.mlp_mean, s.mlp_rstd);
  apply_linear(c, plan.mlp_in, s.mlp_normed, s.hidden_in);
  {
    const PhaseScope phase(Phase::kElementwise);
    gelu_forward(c.config.gelu, s.hidden_in, s.hidden);
    dropout_apply(drop.key(DropoutSite::kHidden, layer), drop.rate(), s.hidden);
  }
  apply_linear(c, plan.mlp_out, s.hidden, branch);
  drop.residual(DropoutSite::kMlpOutput, layer, s.middle, branch, next);
}

// x += dropout(mlp(norm(x))), backward: dx (N, E) enters as the gradient of the output.
void mlp_backward(const EncoderContext& c, int layer, const SequenceState& sequence, const BlockState& s, Matrix dx,
                  float* gradients) {
  const BlockPlan& plan = c.plan.blocks[layer];
  const Dropper drop{c, sequence.example};
  Arena::Scope scope(c.arena);
  const Matrix narrow = c.arena.matrix(dx.rows, dx.cols);  // (N, E)
  const Matrix d_hidden = c.arena.matrix(dx.rows, c.config.hidden);

  const ConstMatrix d_branch = drop.branch_gradient(DropoutSite::kMlpOutput, layer, dx, narrow);
  apply_linear_backward(c, plan.mlp_out, s.hidden, d_branch, d_hidden, gradients);
  {
    const PhaseScope phase(Phase::kElementwise);
    dropout_apply(drop.key(DropoutSite::kHidden, layer), drop.rate(), d_hidden);
    gelu_backward(c.config.gelu, s.hidden_in, d_hidden, d_hidden);
  }
  apply_linear_backward(c, plan.mlp_in, s.mlp_normed, d_hidden, narrow, gradients);
  norm_backward(c, plan.mlp_norm, s.middle, s.mlp_mean, s.mlp_rstd, narrow, dx, gradients);
}

// x += dropout(attention(norm(x))), backward.
void attention_backward(const EncoderContext& c, int layer, const SequenceState& sequence, const BlockState& s,
                        Matrix dx, float* gradients) {
  const BlockPlan& plan = c.plan.blocks[layer];
  const Dropper drop{c, sequence.example};
  const int64_t n = dx.rows, width = c.config.qkv_dim;
  Arena::Scope scope(c.arena);
  const Matrix narrow = c.arena.matrix(n, dx.cols);  // (N, E)
  const Matrix d_heads = c.arena.matrix(n, width);
  const Matrix d_qkv = c.arena.matrix(n, 3 * width);

  const ConstMatrix d_branch = drop.branch_gradient(DropoutSite::kAttentionOutput, layer, dx, narrow);
  apply_linear_backward(c, plan.output, s.heads, d_branch, d_heads, gradients);

  const int64_t tensors = static_cast<int64_t>(plan.kernel_tensors.size());
  const auto pointers = arena_array<const float*>(c.arena, tensors);
  const auto d_pointers = arena_array<float*>(c.arena, tensors);
  for (int64_t i = 0; i < tensors; ++i) {
    d_pointers[i] = plan.kernel->parameters()[i].trained ? gradients + plan.kernel_tensors[i] : nullptr;
  }
  fill_zero(narrow);  // kernels that read the layer input add their part of its gradient, the products add theirs
  AttentionGradients g;
  g.d_out = d_heads;
  g.dq = d_qkv.col_block(0, width);
  g.dk = d_qkv.col_block(width, width);
  g.dv = d_qkv.col_block(2 * width, width);
  g.dx = narrow;
  g.d_parameters = d_pointers;
  {
    const AttentionInput in = attention_input(c, plan, s, sequence.places, sequence.example, layer, pointers);
    if (c.observer != nullptr) g.score_gradient_squares = c.observer->score_gradient_squares(in);
    const PhaseScope phase(Phase::kScores);
    plan.kernel->backward(in, s.heads, s.kernel_saved, g, c.arena);
  }

  apply_linear_backward(c, plan.qkv, s.attention_normed, d_qkv, narrow, gradients, Write::kAdd);
  norm_backward(c, plan.attention_norm, s.x, s.attention_mean, s.attention_rstd, narrow, dx, gradients);
}

// Ids and places of the rows: the sequence's own, or with a row for the learned vector before them.
void set_rows(const EncoderContext& c, const Sequence& sequence, SequenceState& state) {
  check(sequence.ids.size() == sequence.places.size(), "{} ids but {} places", sequence.ids.size(),
        sequence.places.size());
  const int32_t shift = c.plan.cls == kNoTensor ? 0 : 1;
  for (size_t i = 0; i < sequence.ids.size(); ++i) {
    check(sequence.ids[i] > 0 && sequence.ids[i] < c.plan.vocabulary, "token id {} with a vocabulary of {}",
          sequence.ids[i], c.plan.vocabulary);
    check(sequence.places[i] >= 0 && sequence.places[i] + shift < c.plan.places, "place {} with {} positions",
          sequence.places[i], c.plan.places);
  }
  if (shift == 0) {
    state.ids = sequence.ids;
    state.places = sequence.places;
    return;
  }
  const int64_t rows = static_cast<int64_t>(sequence.ids.size()) + 1;
  const auto ids = arena_array<int32_t>(c.arena, rows);
  const auto places = arena_array<int32_t>(c.arena, rows);
  for (size_t i = 0; i < sequence.ids.size(); ++i) {
    ids[i + 1] = sequence.ids[i];
    places[i + 1] = sequence.places[i] + 1;
  }
  state.ids = ids;
  state.places = places;
}

void embed(const EncoderContext& c, const SequenceState& state, Matrix x) {
  const PhaseScope phase(Phase::kEmbedding);
  const ConstMatrix token(c.parameters + c.plan.token, c.plan.vocabulary, c.plan.dim);
  const ConstMatrix position = c.plan.positions(c.parameters);
  if (c.plan.cls == kNoTensor) {
    embedding_forward(state.ids, state.places, token, position, x);
  } else {
    const float* cls = c.parameters + c.plan.cls;
    for (int64_t i = 0; i < c.plan.dim; ++i) x.data[i] = cls[i] + position.data[i];
    embedding_forward(state.ids.subspan(1), state.places.subspan(1), token, position, x.row_block(1, x.rows - 1));
  }
  const Dropper drop{c, state.example};
  dropout_apply(drop.key(DropoutSite::kEmbedding, 0), drop.rate(), x);
}

void embed_backward(const EncoderContext& c, const SequenceState& state, Matrix dx, float* gradients) {
  const PhaseScope phase(Phase::kEmbedding);
  const Dropper drop{c, state.example};
  dropout_apply(drop.key(DropoutSite::kEmbedding, 0), drop.rate(), dx);
  const Matrix d_token(gradients + c.plan.token, c.plan.vocabulary, c.plan.dim);
  Matrix d_position;
  if (c.plan.position != kNoTensor) d_position = {gradients + c.plan.position, c.plan.places, c.plan.dim};
  if (c.plan.cls == kNoTensor) {
    embedding_backward(state.ids, state.places, dx, d_token, d_position);
    return;
  }
  float* d_cls = gradients + c.plan.cls;
  for (int64_t i = 0; i < c.plan.dim; ++i) {
    d_cls[i] += dx.data[i];
    if (!d_position.empty()) d_position.data[i] += dx.data[i];
  }
  embedding_backward(state.ids.subspan(1), state.places.subspan(1), dx.row_block(1, dx.rows - 1), d_token, d_position);
}

bool pools_first(const ModelConfig& config) { return config.pooling == "cls" || config.pooling == "cls-vector"; }

// Rows of the final norm that pooling reads.
int64_t pooled_rows(const ModelConfig& config, int64_t tokens) {
  return pools_first(config) ? std::min<int64_t>(tokens, 1) : tokens;
}

float pooling_divisor(const ModelConfig& config, int64_t tokens) {
  return static_cast<float>(config.pooling == "mean" ? std::max<int64_t>(tokens, 1) : config.padded_length);
}

}  // namespace

SequenceState encode(const EncoderContext& c, const Sequence& sequence, uint32_t example, float* pooled) {
  SequenceState state;
  state.example = example;
  set_rows(c, sequence, state);
  const int64_t n = static_cast<int64_t>(state.ids.size());
  if (n == 0) {
    std::fill_n(pooled, c.plan.dim, 0.0f);
    return state;
  }
  const int layers = c.config.layers;
  state.blocks = arena_array<BlockState>(c.arena, layers);
  state.x = c.arena.matrix(n, c.plan.dim);
  embed(c, state, state.x);
  for (int layer = 0; layer < layers; ++layer) {
    BlockState& block = state.blocks[layer];
    block.x = state.x;
    if (c.keep) {
      state.x = c.arena.matrix(n, c.plan.dim);
      allocate_block(c, c.plan.blocks[layer], block);
      block_forward(c, layer, state, block, state.x);
    } else {
      Arena::Scope scope(c.arena);
      allocate_block(c, c.plan.blocks[layer], block);
      block_forward(c, layer, state, block, state.x);
    }
  }
  const int64_t rows = pooled_rows(c.config, n);
  state.mean = c.arena.floats(rows), state.rstd = c.arena.floats(rows);
  Arena::Scope scope(c.arena);
  const Matrix y = c.arena.matrix(rows, c.plan.dim);
  norm_forward(c, c.plan.final_norm, state.x.row_block(0, rows), y, state.mean, state.rstd);
  const PhaseScope phase(Phase::kEmbedding);
  if (pools_first(c.config)) {
    first_pool_forward(y, pooled);
  } else {
    sum_pool_forward(y, pooling_divisor(c.config, n), pooled);
  }
  return state;
}

void encode_backward(const EncoderContext& c, const SequenceState& state, const float* d_pooled, float* gradients) {
  const int64_t n = static_cast<int64_t>(state.ids.size());
  if (n == 0) return;
  Arena::Scope scope(c.arena);
  const Matrix dx = c.arena.matrix(n, c.plan.dim);
  fill_zero(dx);
  {
    Arena::Scope inner(c.arena);
    const int64_t rows = pooled_rows(c.config, n);
    const Matrix dy = c.arena.matrix(rows, c.plan.dim);
    if (pools_first(c.config)) {
      first_pool_backward(d_pooled, dy);
    } else {
      sum_pool_backward(d_pooled, pooling_divisor(c.config, n), dy);
    }
    norm_backward(c, c.plan.final_norm, state.x.row_block(0, rows), state.mean, state.rstd, dy, dx.row_block(0, rows),
                  gradients);
  }
  for (int layer = c.config.layers - 1; layer >= 0; --layer) {
    mlp_backward(c, layer, state, state.blocks[layer], dx, gradients);
    attention_backward(c, layer, state, state.blocks[layer], dx, gradients);
  }
  embed_backward(c, state, dx, gradients);
}

}  // namespace lra
