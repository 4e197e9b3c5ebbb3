// The encoder of lib/model/encoder.h on a whole ragged batch, by the same plan and layout. It is written a second time,
// over the device's operations, because the first one lives from what a device cannot have: one sequence at a time in
// a cache, scratch of a task, threads to spare, an observer.
#pragma once

#include <memory>
#include <vector>

#include "lib/device/attention.h"
#include "lib/model/config.h"
#include "lib/model/plan.h"

namespace lra::device {

struct EncoderContext {
  const ModelConfig& config;
  const ModelPlan& plan;
  const std::vector<std::unique_ptr<Attention>>& attention;  // of each block
  const float* parameters;                                   // device
  ConstMatrix positions;                                     // (places, E), device
  Context on;
  const RaggedBatch& batch;
  bool training = false;  // dropout on, activations kept for the backward pass
  std::array<uint32_t, 2> dropout_key{};
};

// What a block leaves for its backward pass.
struct BlockState {
  Matrix x;                                // (N, E) block input; N: tokens of the batch
  Matrix attention_normed;                 // (N, E)
  float *attention_mean, *attention_rstd;  // (N)
  Matrix qkv;                              // (N, 3 H D)
  Matrix heads;                            // (N, H D)
  float* saved;                            // of the attention, null in evaluation
  Matrix middle;                           // (N, E) after the attention's residual connection
  Matrix mlp_normed;                       // (N, E)
  float *mlp_mean, *mlp_rstd;              // (N)
  Matrix hidden_in, hidden;                // (N, hidden) before GELU, after GELU and dropout
};

struct EncoderState {
  std::vector<BlockState> blocks;  // in training
  Matrix x;                        // (N, E) last block's output
  float *mean, *rstd;              // (N) of the final norm
};

// pooled (sequences, E). In training the state stays valid as long as what was taken from the scratch memory.
EncoderState encode(const EncoderContext& context, Matrix pooled);
// Adds to gradients (device, twin of the parameters).
void encode_backward(const EncoderContext& context, const EncoderState& state, ConstMatrix d_pooled, float* gradients);

}  // namespace lra::device
