// A random attention problem, what a kernel makes of it forward and backward, and the same problem in double for the
// reference.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
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

// Queries, keys, values and the layer input in one buffer, rows side by side as the encoder keeps the first three, and
// all that goes with them. E = H D.
struct Problem {
  AttentionShape shape;
  AttentionSpec spec;
  int64_t n;
  float dropout;
  bool training = true;
  Precision precision = Precision::kFloat32;
  const Fork* fork = nullptr;
  std::unique_ptr<AttentionKernel> kernel;
  std::vector<float> inputs, d_out;  // (N, 4 H D): q, k, v, x; (N, H D)
  std::vector<int32_t> places;       // with gaps, as of black pixels
  std::vector<std::vector<float>> parameters;

  Problem(const std::string& text, int64_t tokens, int heads, int head_dim, float rate, uint64_t seed = 1)
      : shape{heads, head_dim, static_cast<int>(std::max<int64_t>(512, (tokens + 255) / 128 * 128)), heads * head_dim},
        spec(parse_attention(text)),
        n(tokens),
        dropout(rate) {
    omp_set_num_threads(1);  // products run on one thread, as in training
    kernel = make_attention(spec, shape);
    Random random(seed, RandomStream::kData);
    inputs.resize(n * 4 * width());
    d_out.resize(n * width());
    for (float& x : inputs) x = static_cast<float>(random.normal());
    const auto family = std::ranges::find(attention_families(), spec.name, &AttentionFamily::name);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < 2 * width(); ++c) inputs[i * 4 * width() + c] *= family->example_scale;
    }
    for (float& x : d_out) x = static_cast<float>(random.normal());
    int32_t place = 0;
    for (int64_t i = 0; i < n; ++i) {
      // Tokens of long sequences stand closely.
      if (i % 5 == 3 && shape.padded_length - place > n - i) ++place;
      places.push_back(place++);
    }
    for (const KernelParameter& parameter : kernel->parameters()) {
      parameters.emplace_back(parameter.size());
      parameter.start(random, parameters.back());
      if (!parameter.trained) continue;
      for (float& x : parameters.back()) x += 0.3f * static_cast<float>(random.normal());
    }
  }

  int64_t width() const { return static_cast<int64_t>(shape.heads) * shape.head_dim; }

  AttentionInput input(std::vector<const float*>& pointers) const {
    pointers.clear();
    for (const auto& parameter : parameters) pointers.push_back(parameter.data());
    const ConstMatrix all(inputs.data(), n, 4 * width());
    AttentionInput in;
    in.q = all.col_block(0, width());
    in.k = all.col_block(width(), width());
    in.v = all.col_block(2 * width(), width());
    in.x = all.col_block(3 * width(), width());
    in.places = places;
    in.parameters = pointers;
    in.training = training;
    in.dropout = kernel->dropout_applies() ? dropout : 0.0f;
    in.dropout_key = kKey;
    in.example = kExample;
    in.layer = kLayer;
    in.precision = precision;
    in.fork = fork;
    return in;
  }
};

struct Result {
  std::vector<float> out, saved, d_inputs;  // d_inputs (N, 4 H D) as the inputs
  std::vector<std::vector<float>> d_parameters;
};

inline Result run(const Problem& p) {
  Result r;
  std::vector<const float*> pointers;
  const AttentionInput in = p.input(pointers);
  Arena arena;
  r.out.assign(p.n * p.width(), NAN);
  r.saved.assign(p.kernel->saved_floats(p.n, in.dropout), NAN);
  r.d_inputs.assign(p.n * 4 * p.width(), NAN);
  const Matrix out(r.out.data(), p.n, p.width()), all(r.d_inputs.data(), p.n, 4 * p.width());
  p.kernel->forward(in, out, r.saved.data(), arena);
  std::vector<float*> d_pointers;
  for (const auto& parameter : p.parameters) r.d_parameters.emplace_back(parameter.size());
  for (size_t i = 0; i < p.parameters.size(); ++i) {
    d_pointers.push_back(p.kernel->parameters()[i].trained ? r.d_parameters[i].data() : nullptr);
  }
  std::vector<float> dx(p.n * p.width());  // without gaps, as in the encoder
  AttentionGradients gradients;
  gradients.d_out = ConstMatrix(p.d_out.data(), p.n, p.width());
  gradients.dq = all.col_block(0, p.width());
  gradients.dk = all.col_block(p.width(), p.width());
  gradients.dv = all.col_block(2 * p.width(), p.width());
  gradients.dx = Matrix(dx.data(), p.n, p.width());
  gradients.d_parameters = d_pointers;
  p.kernel->backward(in, out, r.saved.data(), gradients, arena);
  for (int64_t i = 0; i < p.n; ++i) {
    std::copy_n(gradients.dx.row(i), p.width(), all.row(i) + 3 * p.width());
  }
  return r;
}

// The same in double by the reference; this owns the converted inputs.
struct DoubleProblem {
  std::vector<double> inputs, d_out;
  ref::AttentionProblem problem;
  ref::Reference reference;

  explicit DoubleProblem(const Problem& p)
      : inputs(p.inputs.begin(), p.inputs.end()),
        d_out(p.d_out.begin(), p.d_out.end()),
        reference(attention_reference(p.spec)) {
    const MatrixView<const double> all(inputs.data(), p.n, 4 * p.width());
    problem = {p.shape,
               p.spec,
               all.col_block(0, p.width()),
               all.col_block(p.width(), p.width()),
               all.col_block(2 * p.width(), p.width()),
               all.col_block(3 * p.width(), p.width()),
               p.places,
               {},
               p.training,
               {}};
    problem.dropout_key = kKey;
    problem.layer = kLayer;
    for (const auto& parameter : p.parameters) problem.parameters.emplace_back(parameter.begin(), parameter.end());
    if (p.dropout > 0 && p.kernel->dropout_applies()) {
      std::vector<double> factors;  // drawn once: the reference is asked many times
      for (int head = 0; head < p.shape.heads; ++head) {
        const DropoutKey key{kKey, dropout_site(DropoutSite::kAttention, kLayer, head), kExample};
        for (int64_t at = 0; at < p.n * p.n; ++at) {
          const bool kept =
              ref::dropout_keeps(key, p.dropout, static_cast<uint32_t>(at / p.n), static_cast<uint32_t>(at % p.n));
          factors.push_back(kept ? static_cast<double>(dropout_scale(p.dropout)) : 0.0);
        }
      }
      problem.dropout = [factors = std::move(factors), n = p.n](int head, int64_t i, int64_t j) {
        return factors[(head * n + i) * n + j];
      };
    }
  }

  ref::Row out() const { return reference(problem); }
  // Σ out d_out, the loss whose gradient d_out is.
  double loss() const {
    const ref::Row y = out();
    return std::inner_product(y.begin(), y.end(), d_out.begin(), 0.0);
  }
};

}  // namespace lra
