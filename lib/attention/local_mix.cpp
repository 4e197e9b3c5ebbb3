#include "lib/attention/local_mix.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/attention/place_convolution.h"
#include "lib/ops/activations.h"
#include "lib/ops/matmul.h"
#include "lib/util/check.h"

namespace lra {
namespace {

class LocalMix final : public AttentionKernel {
 public:
  LocalMix(std::unique_ptr<AttentionKernel> inner, int width)
      : AttentionKernel(inner->shape(), inner->spec()),
        inner_(std::move(inner)),
        parameters_(inner_->parameters()),
        taps_(width == 0 ? 3 : 9),
        convolution_{3, width} {
    const int64_t e = shape().dim, d = shape().head_dim;
    const auto start = start_uniform(1.0 / std::sqrt(static_cast<double>(d)));
    parameters_.push_back({"local_in.weight", {e, d, 1}, start});
    parameters_.push_back({"local_in.bias", {e}, start});
    parameters_.push_back({"local_out.weight", {e * taps_, d, 1}, start});
    parameters_.push_back({"local_out.bias", {e * taps_}, start});
  }

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  // The output of the kernel, then what it saves.
  int64_t saved_floats(int64_t tokens, float dropout) const override {
    return y_floats(tokens) + inner_->saved_floats(tokens, dropout);
  }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  double flops(int64_t tokens, bool training, float dropout) const override {
    const double n = static_cast<double>(tokens), e = shape().dim;
    const double maps = 2.0 * e * shape().head_dim * static_cast<double>(1 + taps_);
    const double convolution = 2.0 * n * e * static_cast<double>(taps_);
    return inner_->flops(tokens, training, dropout) + (training ? 4.0 : 1.0) * maps +
           (training ? 3.0 : 1.0) * convolution;
  }
  std::string form(bool training, float dropout) const override { return inner_->form(training, dropout); }
  bool dropout_applies() const override { return inner_->dropout_applies(); }
  bool has_weights() const override { return inner_->has_weights(); }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override {
    inner_->visit_weights(of_inner(in), arena, visit);
  }

 private:
  enum Tensor { kInWeight, kInBias, kOutWeight, kOutBias };

  size_t own() const { return inner_->parameters().size(); }
  int64_t y_floats(int64_t tokens) const { return (tokens * shape().dim + 15) / 16 * 16; }
  AttentionInput of_inner(AttentionInput in) const {
    in.parameters = in.parameters.first(own());
    return in;
  }
  const float* tensor(const AttentionInput& in, Tensor which) const { return in.parameters[own() + which]; }

  // Column c of a group belongs to a head, and so do the columns that it meets: tensors are H matrices one after
  // another.
  struct Taps {
    Matrix mean, hidden, activated;  // (1, E)
    Matrix taps;                     // (E, taps)
  };
  Taps taps_of(const AttentionInput& in, Arena& arena) const;
  // From the gradient of the taps (E, taps) those of the parameters and of x.
  void taps_backward(const AttentionInput& in, const Taps& taps, ConstMatrix d_taps,
                     const AttentionGradients& gradients, Arena& arena) const;

  std::unique_ptr<AttentionKernel> inner_;
  std::vector<KernelParameter> parameters_;
  int64_t taps_;
  ConvolutionShape convolution_;
};

// y = W x + b in groups: W (H groups of `outs` rows, D), x (1, H D), y (1, H outs).
struct GroupedMap {
  int64_t heads, d, outs;
  const float *weight, *bias;

  void apply(ConstMatrix x, Matrix y) const {
    std::copy_n(bias, heads * outs, y.data);
    for (int64_t h = 0; h < heads; ++h) {
      matmul(x.col_block(h * d, d), Transpose::kNo, ConstMatrix(weight + h * outs * d, outs, d), Transpose::kYes,
             y.col_block(h * outs, outs), Write::kAdd);
    }
  }
  // dx is overwritten, d_weight and d_bias are added to.
  void backward(ConstMatrix x, ConstMatrix dy, Matrix dx, float* d_weight, float* d_bias) const {
    for (int64_t i = 0; i < heads * outs; ++i) d_bias[i] += dy.data[i];
    for (int64_t h = 0; h < heads; ++h) {
      const ConstMatrix part = dy.col_block(h * outs, outs), in = x.col_block(h * d, d);
      matmul(part, Transpose::kNo, ConstMatrix(weight + h * outs * d, outs, d), Transpose::kNo, dx.col_block(h * d, d),
             Write::kOver);
      matmul(part, Transpose::kYes, in, Transpose::kNo, Matrix(d_weight + h * outs * d, outs, d), Write::kAdd);
    }
  }
};

LocalMix::Taps LocalMix::taps_of(const AttentionInput& in, Arena& arena) const {
  const int64_t e = shape().dim, n = in.x.rows, d = shape().head_dim;
  const Taps t = {arena.matrix(1, e), arena.matrix(1, e), arena.matrix(1, e), arena.matrix(e, taps_)};
  std::fill_n(t.mean.data, e, 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < e; ++c) t.mean.data[c] += in.x.row(i)[c];
  }
  for (int64_t c = 0; c < e; ++c) t.mean.data[c] /= static_cast<float>(n);
  GroupedMap{shape().heads, d, d, tensor(in, kInWeight), tensor(in, kInBias)}.apply(t.mean, t.hidden);
  gelu_forward(Gelu::kExact, t.hidden, t.activated);
  GroupedMap{shape().heads, d, d * taps_, tensor(in, kOutWeight), tensor(in, kOutBias)}.apply(
      t.activated, Matrix(t.taps.data, 1, e * taps_));
  return t;
}

void LocalMix::taps_backward(const AttentionInput& in, const Taps& t, ConstMatrix d_taps,
                             const AttentionGradients& gradients, Arena& arena) const {
  const int64_t e = shape().dim, n = in.x.rows, d = shape().head_dim;
  const auto d_tensor = [&](Tensor which) { return gradients.d_parameters[own() + which]; };
  const Matrix d_hidden = arena.matrix(1, e), d_mean = arena.matrix(1, e);
  GroupedMap{shape().heads, d, d * taps_, tensor(in, kOutWeight), tensor(in, kOutBias)}.backward(
      t.activated, ConstMatrix(d_taps.data, 1, e * taps_), d_hidden, d_tensor(kOutWeight), d_tensor(kOutBias));
  gelu_backward(Gelu::kExact, t.hidden, d_hidden, d_hidden);
  GroupedMap{shape().heads, d, d, tensor(in, kInWeight), tensor(in, kInBias)}.backward(
      t.mean, d_hidden, d_mean, d_tensor(kInWeight), d_tensor(kInBias));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < e; ++c) gradients.dx.row(i)[c] += d_mean.data[c] / static_cast<float>(n);
  }
}

// Taps of all channels side by side, as loops over the channels want them.
Matrix transposed(ConstMatrix x, Arena& arena) {
  const Matrix y = arena.matrix(x.cols, x.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) y.row(j)[i] = x.row(i)[j];
  }
  return y;
}

void LocalMix::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  const Arena::Scope scope(arena);
  const Matrix y(saved != nullptr ? saved : arena.floats(y_floats(in.q.rows)), out.rows, out.cols);
  inner_->forward(of_inner(in), y, saved != nullptr ? saved + y_floats(in.q.rows) : nullptr, arena);
  if (in.q.rows == 0) return;
  for (int64_t i = 0; i < y.rows; ++i) std::copy_n(y.row(i), y.cols, out.row(i));
  const Matrix taps = transposed(taps_of(in, arena).taps, arena);
  for_each_neighbour(convolution_, in.places, [&](int64_t tap, int64_t i, int64_t j) {
    const float *w = taps.row(tap), *v = in.v.row(j);
    float* to = out.row(i);
    for (int64_t c = 0; c < out.cols; ++c) to[c] += w[c] * v[c];
  });
}

void LocalMix::backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                        const AttentionGradients& gradients, Arena& arena) const {
  const Arena::Scope scope(arena);
  AttentionGradients of_kernel = gradients;
  of_kernel.d_parameters = gradients.d_parameters.first(own());
  inner_->backward(of_inner(in), ConstMatrix(saved, out.rows, out.cols), saved + y_floats(out.rows), of_kernel, arena);
  if (in.q.rows == 0) return;
  const Taps t = taps_of(in, arena);
  const Matrix taps = transposed(t.taps, arena), d_taps = arena.matrix(taps_, out.cols);
  std::fill_n(d_taps.data, taps_ * out.cols, 0.0f);
  for_each_neighbour(convolution_, in.places, [&](int64_t tap, int64_t i, int64_t j) {
    const float *w = taps.row(tap), *v = in.v.row(j), *g = gradients.d_out.row(i);
    float *dw = d_taps.row(tap), *dv = gradients.dv.row(j);
    for (int64_t c = 0; c < out.cols; ++c) {
      dv[c] += w[c] * g[c];
      dw[c] += v[c] * g[c];
    }
  });
  taps_backward(in, t, transposed(d_taps, arena), gradients, arena);
}

}  // namespace

std::unique_ptr<AttentionKernel> add_local_mix(std::unique_ptr<AttentionKernel> kernel, int width) {
  const AttentionShape& shape = kernel->shape();
  if (shape.dim != shape.heads * shape.head_dim) {
    throw UsageError("attention {}: its heads together must be as wide as the model ({} and {})", kernel->spec().name,
                     shape.heads * shape.head_dim, shape.dim);
  }
  return std::make_unique<LocalMix>(std::move(kernel), width);
}

namespace ref {

void add_local_mix(const AttentionProblem& problem, size_t first, int width, Row& out) {
  const int64_t n = problem.tokens(), d = problem.shape.head_dim, e = problem.shape.dim;
  const Row &in_weight = problem.parameters[first], &in_bias = problem.parameters[first + 1];
  const Row &out_weight = problem.parameters[first + 2], &out_bias = problem.parameters[first + 3];
  const int64_t taps = width == 0 ? 3 : 9;
  Row mean(e, 0.0), hidden(in_bias), weights(out_bias);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < e; ++c) mean[c] += problem.x.row(i)[c] / static_cast<double>(n);
  }
  for (int64_t c = 0; c < e; ++c) {
    for (int64_t k = 0; k < d; ++k) hidden[c] += in_weight[c * d + k] * mean[c / d * d + k];
    hidden[c] *= 0.5 * (1.0 + std::erf(hidden[c] / std::numbers::sqrt2));
  }
  for (int64_t o = 0; o < e * taps; ++o) {
    for (int64_t k = 0; k < d; ++k) weights[o] += out_weight[o * d + k] * hidden[o / taps / d * d + k];
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t pixels = width == 0 ? problem.shape.padded_length : width;
      const int64_t below = problem.places[j] / pixels - problem.places[i] / pixels;
      const int64_t beside = problem.places[j] % pixels - problem.places[i] % pixels;
      if (std::abs(beside) > 1 || std::abs(below) > (width == 0 ? 0 : 1)) continue;
      const int64_t tap = (width == 0 ? 0 : 3 * (below + 1)) + beside + 1;
      for (int64_t c = 0; c < e; ++c) out[i * e + c] += weights[c * taps + tap] * problem.v.row(j)[c];
    }
  }
}

}  // namespace ref
}  // namespace lra
