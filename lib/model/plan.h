// Where each tensor of the classifier lies in the flat parameter vector, and the attention kernel of each block.
// Internal to this room. Names and their order follow PyTorch's named_parameters() of tests/reference/lra_model.py, but
// for one thing: the three weights of query, key and value stand side by side, and so do their biases, so that one
// matrix product makes all three.
#pragma once

#include <memory>
#include <vector>

#include "lib/attention/attention.h"
#include "lib/model/config.h"
#include "lib/model/parameters.h"
#include "lib/tensor/view.h"

namespace lra {

constexpr int64_t kNoTensor = -1;

struct NormPlan {
  int64_t weight, bias;  // (E) each
};

struct LinearPlan {
  int64_t weight = kNoTensor;  // (out, in)
  int64_t bias = kNoTensor;    // (out)
  int64_t in = 0, out = 0;

  bool exists() const { return weight != kNoTensor; }
  ConstMatrix weight_of(const float* parameters) const { return {parameters + weight, out, in}; }
  Matrix weight_of(float* gradients) const { return {gradients + weight, out, in}; }
  const float* bias_of(const float* parameters) const { return bias == kNoTensor ? nullptr : parameters + bias; }
  float* bias_of(float* gradients) const { return bias == kNoTensor ? nullptr : gradients + bias; }
};

struct BlockPlan {
  NormPlan attention_norm, mlp_norm;
  LinearPlan qkv;  // query, key and value as one
  LinearPlan output, mlp_in, mlp_out;
  std::unique_ptr<AttentionKernel> kernel;
  std::vector<int64_t> kernel_tensors;  // offsets, in the order of kernel->parameters()
};

struct ModelPlan {
  // Adds every tensor to the layout.
  ModelPlan(const ModelConfig& config, ParameterLayout& layout);

  ConstMatrix positions(const float* parameters) const {
    return {sinusoidal.empty() ? parameters + position : sinusoidal.data(), places, dim};
  }

  int64_t dim, vocabulary;
  int64_t places;                 // rows of the position table: cls-vector has place 0 for itself
  int64_t cls = kNoTensor;        // (E), cls-vector only
  int64_t token = kNoTensor;      // (vocabulary, E)
  int64_t position = kNoTensor;   // (places, E), learned positions only
  std::vector<float> sinusoidal;  // the fixed table else
  std::vector<BlockPlan> blocks;
  NormPlan final_norm;
  LinearPlan head_in, head_mid, head_out;  // head_mid: pair_head "two" only
};

}  // namespace lra
