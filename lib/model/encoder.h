// The encoder on one ragged sequence: embedding, pre-norm blocks (Xiong et al. 2020), final norm, pooling; forward and
// backward. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "lib/model/classifier.h"
#include "lib/model/plan.h"

namespace lra {

// What stays the same over the sequences of one example.
struct EncoderContext {
  const ModelConfig& config;
  const ModelPlan& plan;
  const float* parameters;
  bool training = false;  // dropout on
  bool keep = false;      // activations are kept for the backward pass
  std::array<uint32_t, 2> dropout_key{};
  Arena& arena;
  Precision precision;
  const Fork* fork = nullptr;             // threads to spare, or null
  AttentionObserver* observer = nullptr;  // or null
};

// What a block leaves for its backward pass. Matrices lie in the arena.
struct BlockState {
  Matrix x;                                // (N, E) block input
  Matrix attention_normed;                 // (N, E)
  float *attention_mean, *attention_rstd;  // (N)
  Matrix qkv;                              // (N, 3 H D)
  Matrix heads;                            // (N, H D) attention output before its projection
  float* kernel_saved;
  Matrix middle;               // (N, E) after the attention's residual connection
  Matrix mlp_normed;           // (N, E)
  float *mlp_mean, *mlp_rstd;  // (N)
  Matrix hidden_in;            // (N, hidden) before GELU
  Matrix hidden;               // (N, hidden) after GELU and dropout
};

struct SequenceState {
  std::span<const int32_t> ids, places;  // (N), with the cls vector's row if there is one
  uint32_t example = 0;                  // in dropout counters
  std::span<BlockState> blocks;
  Matrix x;                                // (N, E) last block's output
  float *mean = nullptr, *rstd = nullptr;  // of the final norm
};

// pooled (E). Where activations are kept the state stays valid until the caller releases what the arena gave; else it
// is of no further use.
SequenceState encode(const EncoderContext& context, const Sequence& sequence, uint32_t example, float* pooled);
// Adds to gradients (twin of the parameters).
void encode_backward(const EncoderContext& context, const SequenceState& state, const float* d_pooled,
                     float* gradients);

// Typed storage in an arena, value-initialised.
template <class T>
std::span<T> arena_array(Arena& arena, int64_t count) {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
  const int64_t floats = (count * static_cast<int64_t>(sizeof(T)) + 3) / 4;
  T* first = reinterpret_cast<T*>(arena.floats(floats));
  std::uninitialized_value_construct_n(first, count);
  return {first, static_cast<size_t>(count)};
}

}  // namespace lra
