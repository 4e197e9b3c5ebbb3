// What a layer sees of attention: a kernel maps queries, keys and values of one sequence to outputs, and back.
// Formulas and names: docs/attention.md. A kernel is made from a spec ("polynomial:power=3,scale=16") by registry.h.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/attention/spec.h"
#include "lib/ops/precision.h"
#include "lib/tensor/arena.h"
#include "lib/tensor/fork.h"
#include "lib/tensor/view.h"
#include "lib/util/rng.h"

namespace lra {

struct AttentionShape {
  int heads;          // H
  int head_dim;       // D
  int padded_length;  // the model's, used by length=max and the like; never the batch's width
  int dim;            // E, width of the layer input
};

// A learned tensor (or a fixed one drawn at the start) of a kernel; its checkpoint name is
// encoder.blocks.I.attention.kernel.NAME.
struct KernelParameter {
  std::string name;
  std::vector<int64_t> shape;
  // Writes the start values, row-major; its generator is a function of the seed and the tensor's name.
  std::function<void(Random&, std::span<float>)> start;
  bool trained = true;
  bool shared = false;  // one tensor for all layers, owned by the first

  int64_t size() const;
};

// Start values.
std::function<void(Random&, std::span<float>)> start_constant(double value);
std::function<void(Random&, std::span<float>)> start_normal(double deviation);
std::function<void(Random&, std::span<float>)> start_uniform(double bound);  // of U(-bound, bound)

struct AttentionInput {
  ConstMatrix q, k, v;                       // (N, H*D) each; any stride
  ConstMatrix x;                             // (N, E), the layer input
  std::span<const int32_t> places;           // (N) places in the padded sequence
  std::span<const float* const> parameters;  // one pointer a KernelParameter, in their order
  bool training = false;                     // chooses the form where training and evaluation differ (dropout is apart)
  float dropout = 0.0f;                      // of attention weights; 0 in evaluation
  std::array<uint32_t, 2> dropout_key{};     // see lib/ops/dropout.h
  uint32_t example = 0;
  int layer = 0;
  Precision precision = Precision::kFloat32;  // of the products, where a kernel has others
  const Fork* fork = nullptr;                 // threads to spare; results are the same bits without
};

struct AttentionGradients {
  ConstMatrix d_out;                     // (N, H*D)
  Matrix dq, dk, dv;                     // (N, H*D), overwritten
  Matrix dx;                             // (N, E), added to; only kernels that read x touch it
  std::span<float* const> d_parameters;  // added to; null for tensors that are not trained
  // Σ (dL/dx)² over the scores x of each head (H), added to; null: not asked for. Only where P is a function of scores,
  // and only without a fork.
  double* score_gradient_squares = nullptr;
};

// A row of P, for norms and maps. Both spans run over the row's keys in their order.
struct WeightRow {
  int head;
  int64_t query;
  std::span<const float> scores;  // empty where P is no function of scores
  std::span<const float> weights;
  std::optional<double> jacobian_square;  // Σ_jk (∂p_j / ∂x_k)², where it has a closed form
};

class AttentionKernel {
 public:
  virtual ~AttentionKernel() = default;
  virtual const std::vector<KernelParameter>& parameters() const = 0;
  // Floats that forward leaves for backward (row statistics, dropout masks), for a sequence of N tokens.
  virtual int64_t saved_floats(int64_t tokens, float dropout) const = 0;
  // out (N, H*D) is overwritten. saved has saved_floats(N, dropout) floats, or is null when no backward follows. N may
  // be 0.
  virtual void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const = 0;
  // out and saved as forward left them.
  virtual void backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                        const AttentionGradients& gradients, Arena& arena) const = 0;
  // Floating-point operations of the products for N tokens, all heads, 2 a multiply-add; as executed, and as exact
  // dense attention would need (4 N² D forward, 10 N² D backward a head).
  virtual double flops(int64_t tokens, bool training, float dropout) const = 0;
  double dense_flops(int64_t tokens, bool training) const;
  // "quadratic", "linear" …: recorded with a run.
  virtual std::string form(bool training, float dropout) const = 0;
  virtual bool dropout_applies() const { return true; }
  // Whether there is one matrix P a head such that the output (before what a family does to whole outputs) is P V.
  virtual bool has_weights() const = 0;
  // Calls visit for the rows of P, heads and queries in their order, in evaluation mode. Needs has_weights().
  virtual void visit_weights(const AttentionInput& in, Arena& arena,
                             const std::function<void(const WeightRow&)>& visit) const = 0;
  const AttentionShape& shape() const { return shape_; }
  const AttentionSpec& spec() const { return spec_; }

 protected:
  AttentionKernel(AttentionShape shape, AttentionSpec spec) : shape_(shape), spec_(std::move(spec)) {}

 private:
  AttentionShape shape_;
  AttentionSpec spec_;
};

}  // namespace lra
