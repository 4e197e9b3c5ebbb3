// A random attention problem, what a kernel makes of it forward and backward, and the same problem in double for the
// reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "lib/attention/attention_ref.h"
#include "lib/attention/registry.h"
#include "lib/ops/dropout.h"
#include "lib/util/rng.h"

namespace lra {

inline constexpr std::array<uint32_t, 2> kKey = {17, 4};
inline constexpr uint32_t kExample = 5;
inline constexpr int kLayer = 1;

// Queries, keys and values side by side in one buffer, as the encoder keeps them, and all that goes with them.
struct Problem {
  AttentionShape shape;
  AttentionSpec spec;
  int64_t n;
  float dropout;
  Precision precision = Precision::kFloat32;
  const Fork* fork = nullptr;
  std::unique_ptr<AttentionKernel> kernel;
  std::vector<float> qkv, d_out;
  std::vector<std::vector<float>> parameters;

  Problem(const std::string& text, int64_t tokens, int heads, int head_dim, float rate, uint64_t seed = 1)
      : shape{heads, head_dim, 512, heads * head_dim}, spec(parse_attention(text)), n(tokens), dropout(rate) {
    kernel = make_attention(spec, shape);
    Random random(seed, RandomStream::kData);
    const int64_t width = heads * head_dim;
    qkv.resize(n * 3 * width);
    d_out.resize(n * width);
    for (float& x : qkv) x = static_cast<float>(random.normal());
    for (float& x : d_out) x = static_cast<float>(random.normal());
    for (const KernelParameter& parameter : kernel->parameters()) {
      parameters.push_back(parameter.init);
      for (float& x : parameters.back()) x += 0.3f * static_cast<float>(random.normal());
    }
  }

  int64_t width() const { return static_cast<int64_t>(shape.heads) * shape.head_dim; }

  AttentionInput input(std::vector<const float*>& pointers) const {
    pointers.clear();
    for (const auto& parameter : parameters) pointers.push_back(parameter.data());
    const ConstMatrix all(qkv.data(), n, 3 * width());
    AttentionInput in;
    in.q = all.col_block(0, width());
    in.k = all.col_block(width(), width());
    in.v = all.col_block(2 * width(), width());
    in.parameters = pointers;
    in.training = true;
    in.dropout = dropout;
    in.dropout_key = kKey;
    in.example = kExample;
    in.layer = kLayer;
    in.precision = precision;
    in.fork = fork;
    return in;
  }
};

struct Result {
  std::vector<float> out, saved, d_qkv;
  std::vector<std::vector<float>> d_parameters;
};

inline Result run(const Problem& p) {
  Result r;
  std::vector<const float*> pointers;
  const AttentionInput in = p.input(pointers);
  Arena arena;
  r.out.assign(p.n * p.width(), NAN);
  r.saved.assign(p.kernel->saved_floats(p.n, p.dropout), NAN);
  r.d_qkv.assign(p.n * 3 * p.width(), NAN);
  const Matrix out(r.out.data(), p.n, p.width()), all(r.d_qkv.data(), p.n, 3 * p.width());
  p.kernel->forward(in, out, r.saved.data(), arena);
  std::vector<float*> d_pointers;
  for (const auto& parameter : p.parameters) r.d_parameters.emplace_back(parameter.size());
  for (auto& d : r.d_parameters) d_pointers.push_back(d.data());
  AttentionGradients gradients;
  gradients.d_out = ConstMatrix(p.d_out.data(), p.n, p.width());
  gradients.dq = all.col_block(0, p.width());
  gradients.dk = all.col_block(p.width(), p.width());
  gradients.dv = all.col_block(2 * p.width(), p.width());
  gradients.d_parameters = d_pointers;
  p.kernel->backward(in, out, r.saved.data(), gradients, arena);
  return r;
}

// The same in double by the reference; storage owns the converted inputs.
struct DoubleProblem {
  std::vector<double> qkv, d_out;
  ref::AttentionProblem<double> problem;

  explicit DoubleProblem(const Problem& p) : qkv(p.qkv.begin(), p.qkv.end()), d_out(p.d_out.begin(), p.d_out.end()) {
    const MatrixView<const double> all(qkv.data(), p.n, 3 * p.width());
    problem = {p.shape,
               p.spec,
               all.col_block(0, p.width()),
               all.col_block(p.width(), p.width()),
               all.col_block(2 * p.width(), p.width()),
               {},
               {}};
    for (const auto& parameter : p.parameters) problem.parameters.emplace_back(parameter.begin(), parameter.end());
    if (p.dropout > 0 && p.kernel->dropout_applies()) {
      problem.dropout = [rate = p.dropout](int head, int64_t i, int64_t j) {
        const DropoutKey key{kKey, dropout_site(DropoutSite::kAttention, kLayer, head), kExample};
        const bool kept = ref::dropout_keeps(key, rate, static_cast<uint32_t>(i), static_cast<uint32_t>(j));
        return kept ? static_cast<double>(dropout_scale(rate)) : 0.0;
      };
    }
  }
};

inline std::vector<float> columns(const std::vector<float>& all, int64_t n, int64_t width, int which) {
  std::vector<float> part(n * width);
  for (int64_t i = 0; i < n; ++i) std::copy_n(all.data() + (3 * i + which) * width, width, part.data() + i * width);
  return part;
}

}  // namespace lra
