#include "lib/attention/polynomial_linear.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/feature_map.h"
#include "lib/attention/form_choice.h"
#include "lib/attention/row_kernels.h"
#include "lib/attention/square_features.h"
#include "lib/attention/tile_matmul.h"

namespace lra {
namespace {

// Tokens of a chunk: whole blocks of rows and whole panels of the small products. At D = 32 the square features of one
// take 231 KiB, beside at most three matrices (F, D) of 66 KiB. 32 to 192 tokens take the same time within 10 %.
constexpr int64_t kChunk = 96;
static_assert(kChunk % kTileRows == 0);

template <class Body>
void for_each_chunk(int64_t tokens, const Body& body) {
  for (int64_t first = 0; first < tokens; first += kChunk) body(first, std::min(kChunk, tokens - first));
}

// Products take and give rows of whole vectors. Rows that are none go through a buffer of a chunk.
class PaddedRows {
 public:
  PaddedRows(int64_t d, Arena& arena) : d_(d), width_(padded_width(d)) {
    if (d_ != width_) buffer_ = arena.matrix(kChunk, width_);
  }
  ConstMatrix read(ConstMatrix x) const {
    if (d_ == width_) return x;
    scale_rows(1.0f, nullptr, 0, x, buffer_.row_block(0, x.rows));
    return buffer_.row_block(0, x.rows);
  }
  // Has produce(rows) fill rows of whole vectors; the first D numbers of each end in x.
  template <class Produce>
  void fill(Matrix x, const Produce& produce) const {
    if (d_ == width_) return produce(x);
    const Matrix rows = buffer_.row_block(0, x.rows);
    produce(rows);
    scale_rows(1.0f, nullptr, 0, rows.col_block(0, d_), x);
  }

 private:
  int64_t d_, width_;
  Matrix buffer_;
};

// FirstPower and SecondPower: the features of a chunk of tokens X (count, D), and their products. Both have the same
// members, said at the first. W is D in whole vectors; columns of M and Y beyond D are 0.

class FirstPower {  // phi(x) = x
 public:
  FirstPower(int64_t d, Arena& arena) : d_(d), rows_(d, arena), transposed_(arena.matrix(d, padded_width(d))) {}

  void weights(float* w) const { std::fill_n(w, d_, 1.0f); }
  // M (F, W), for apply and pull_back.
  void set_map(ConstMatrix m) {
    m_ = m;
    std::fill_n(transposed_.data, d_ * transposed_.cols, 0.0f);
    for (int64_t i = 0; i < d_; ++i) {
      for (int64_t j = 0; j < d_; ++j) transposed_.row(j)[i] = m.row(i)[j];
    }
  }
  void set(ConstMatrix x) { x_ = x; }
  // sum (F, W) = or += phi(X)^T Y with Y (count, W).
  void outer(ConstMatrix y, Matrix sum, Write write) const { tile_matmul(x_, Transpose::kYes, y, sum, write); }
  // y (count, W) = phi(X) M.
  void apply(Matrix y) const { tile_matmul(x_, Transpose::kNo, m_, y, Write::kOver); }
  // dx (count, D) from the gradient dy (count, D) of apply. Ends the use of this chunk.
  void pull_back(ConstMatrix dy, Matrix dx) const {
    rows_.fill(dx, [&](Matrix rows) { tile_matmul(dy, Transpose::kNo, transposed_, rows, Write::kOver); });
  }

 private:
  int64_t d_;
  PaddedRows rows_;
  Matrix transposed_;
  ConstMatrix m_, x_;
};

class SecondPower {  // phi(x) = (x_i x_j), tokens as columns
 public:
  SecondPower(int64_t d, Arena& arena)
      : d_(d),
        x_(arena.floats(padded_columns(kChunk) * d)),
        dy_(arena.floats(padded_columns(kChunk) * d)),
        dx_(arena.matrix(d, padded_columns(kChunk))),
        dx_rows_(arena.floats(padded_columns(d) * kChunk)) {
    // Rows apart by an odd number of cache lines, so that they do not share cache sets.
    const int64_t features = square_feature_count(d), stride = padded_columns(kChunk) + 16;
    features_ = Matrix(arena.floats(features * stride), features, padded_columns(kChunk), stride);
  }

  void weights(float* w) const { square_feature_weights(d_, w); }
  void set_map(ConstMatrix m) { m_ = m; }
  void set(ConstMatrix x) {
    count_ = x.rows;
    pack_transposed(x, x_);
    square_features(x_, d_, features_.col_block(0, padded_columns(count_)));
  }
  void outer(ConstMatrix y, Matrix sum, Write write) const {
    tile_matmul(features_.col_block(0, count_), Transpose::kNo, y, sum, write);
  }
  void apply(Matrix y) const { tile_matmul(features_.col_block(0, count_), Transpose::kYes, m_, y, Write::kOver); }
  void pull_back(ConstMatrix dy, Matrix dx) const {
    const int64_t columns = padded_columns(count_), panel = padded_columns(1);
    pack_transposed(dy, dy_);
    // The gradient of the features takes their place: x_ says all that is still needed of them.
    tile_scores(m_.col_block(0, d_), dy_, 0, count_, features_);
    square_features_backward(x_, features_.col_block(0, columns), dx_.col_block(0, columns));
    pack_transposed(dx_.col_block(0, count_), dx_rows_);
    for (int64_t first = 0; first < d_; first += panel) {
      const Matrix part(dx_rows_ + first * count_, count_, std::min(panel, d_ - first), panel);
      scale_rows(1.0f, nullptr, 0, part, dx.col_block(first, part.cols));
    }
  }

 private:
  int64_t d_, count_ = 0;
  float *x_, *dy_;  // panels of pack_transposed
  Matrix dx_;
  float* dx_rows_;
  Matrix features_;
  ConstMatrix m_;
};

// One head.
struct Head {
  int64_t n, d, width, features;
  float gain;
  double factor;  // 1 / (c D^(q/2))
  ConstMatrix q, k, v;
  Matrix map;  // M without its gain
};

// Row f of x times factor * w_f.
template <class Features>
void weigh(const Features& phi, double factor, Matrix x, Arena& arena) {
  const Arena::Scope scope(arena);
  float* weights = arena.floats(x.rows);
  phi.weights(weights);
  scale_rows(static_cast<float>(factor), weights, 1, x, x);
}

template <class Features>
void forward_head(const Head& head, Matrix out, Arena& arena) {
  Features phi(head.d, arena);
  const PaddedRows rows(head.d, arena);
  for_each_chunk(head.n, [&](int64_t first, int64_t count) {
    phi.set(head.k.row_block(first, count));
    phi.outer(rows.read(head.v.row_block(first, count)), head.map, first == 0 ? Write::kOver : Write::kAdd);
  });
  weigh(phi, head.factor, head.map, arena);
  const Matrix map = arena.matrix(head.features, head.width);
  scale_rows(head.gain, nullptr, 0, head.map, map);
  phi.set_map(map);
  for_each_chunk(head.n, [&](int64_t first, int64_t count) {
    phi.set(head.q.row_block(first, count));
    rows.fill(out.row_block(first, count), [&](Matrix y) { phi.apply(y); });
  });
}

struct HeadGradients {
  ConstMatrix d_out;
  Matrix dq, dk, dv;
  float* d_gain;  // or null
};

template <class Features>
void backward_head(const Head& head, const HeadGradients& gradients, Arena& arena) {
  Features phi(head.d, arena);
  const PaddedRows rows(head.d, arena);
  const Matrix map = arena.matrix(head.features, head.width), d_map = arena.matrix(head.features, head.width);
  scale_rows(head.gain, nullptr, 0, head.map, map);
  phi.set_map(map);
  for_each_chunk(head.n, [&](int64_t first, int64_t count) {
    const ConstMatrix d_out = gradients.d_out.row_block(first, count);
    phi.set(head.q.row_block(first, count));
    phi.outer(rows.read(d_out), d_map, first == 0 ? Write::kOver : Write::kAdd);
    phi.pull_back(d_out, gradients.dq.row_block(first, count));
  });
  if (gradients.d_gain != nullptr) {
    float* dots = arena.floats(head.features);
    dot_rows(head.map, d_map, dots);
    double sum = 0.0;
    for (int64_t f = 0; f < head.features; ++f) sum += dots[f];
    *gradients.d_gain += static_cast<float>(sum);
  }
  // From here on the gradient of phi(K)^T V, through which keys and values meet the same two products.
  weigh(phi, head.gain * head.factor, d_map, arena);
  phi.set_map(d_map);
  for_each_chunk(head.n, [&](int64_t first, int64_t count) {
    phi.set(head.k.row_block(first, count));
    rows.fill(gradients.dv.row_block(first, count), [&](Matrix y) { phi.apply(y); });
    phi.pull_back(head.v.row_block(first, count), gradients.dk.row_block(first, count));
  });
}

Head head_of(const AttentionInput& in, const PolynomialOptions& options, int64_t d, int index, Matrix map) {
  return {in.q.rows,
          d,
          map.cols,
          map.rows,
          options.gain(in.parameters, index),
          1.0 / (options.divisor(in.q.rows) * std::pow(static_cast<double>(d), 0.5 * options.power())),
          in.q.col_block(index * d, d),
          in.k.col_block(index * d, d),
          in.v.col_block(index * d, d),
          map};
}

class PolynomialLinearKernel final : public AttentionKernel {
 public:
  PolynomialLinearKernel(const AttentionSpec& spec, const AttentionShape& shape)
      : AttentionKernel(shape, spec),
        options_(spec, shape),
        parameters_(polynomial_parameters(spec, shape)),
        features_(options_.power() == 1 ? shape.head_dim : square_feature_count(shape.head_dim)) {}

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  // M of each head without its gain, whatever N is.
  int64_t saved_floats(int64_t tokens, float dropout) const override;
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  // 4 N F D a head forward, 8 N F D backward.
  double flops(int64_t tokens, bool training, float) const override {
    return (training ? 12.0 : 4.0) * static_cast<double>(tokens) * static_cast<double>(features_) * shape().head_dim *
           shape().heads;
  }
  std::string form(bool, float) const override { return "linear"; }
  bool dropout_applies() const override { return false; }
  bool has_weights() const override { return false; }
  void visit_weights(const AttentionInput&, Arena&, const std::function<void(const WeightRow&)>&) const override {}

 private:
  PolynomialOptions options_;
  std::vector<KernelParameter> parameters_;
  int64_t features_;
};

int64_t PolynomialLinearKernel::saved_floats(int64_t, float) const {
  return shape().heads * features_ * padded_width(shape().head_dim);
}

void PolynomialLinearKernel::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  if (in.q.rows == 0) return;
  const int64_t d = shape().head_dim, width = padded_width(d);
  run_parts(in.fork, shape().heads, arena, [&](int64_t part, Arena& scratch) {
    const int index = static_cast<int>(part);
    const Matrix map = saved == nullptr ? scratch.matrix(features_, width)
                                        : Matrix(saved + index * features_ * width, features_, width);
    const Head head = head_of(in, options_, d, index, map);
    const Matrix head_out = out.col_block(index * d, d);
    if (options_.power() == 1) {
      forward_head<FirstPower>(head, head_out, scratch);
    } else {
      forward_head<SecondPower>(head, head_out, scratch);
    }
  });
}

void PolynomialLinearKernel::backward(const AttentionInput& in, ConstMatrix, const float* saved,
                                      const AttentionGradients& gradients, Arena& arena) const {
  if (in.q.rows == 0) return;
  const int64_t d = shape().head_dim, width = padded_width(d);
  run_parts(in.fork, shape().heads, arena, [&](int64_t part, Arena& scratch) {
    const int index = static_cast<int>(part);
    // Only read.
    const Matrix map(const_cast<float*>(saved) + index * features_ * width, features_, width);
    const Head head = head_of(in, options_, d, index, map);
    const HeadGradients of_head = {gradients.d_out.col_block(index * d, d), gradients.dq.col_block(index * d, d),
                                   gradients.dk.col_block(index * d, d), gradients.dv.col_block(index * d, d),
                                   options_.learnt_gain() ? gradients.d_parameters[0] + index : nullptr};
    if (options_.power() == 1) {
      backward_head<FirstPower>(head, of_head, scratch);
    } else {
      backward_head<SecondPower>(head, of_head, scratch);
    }
  });
}

// phi of keys, and of queries times gain w / D^(q/2); the divisor c is the denominator.
class PowerFeatures final : public FeatureMap {
 public:
  PowerFeatures(const AttentionSpec& spec, const AttentionShape& shape)
      : options_(spec, shape),
        parameters_(polynomial_parameters(spec, shape)),
        d_(shape.head_dim),
        factor_(std::pow(static_cast<float>(d_), -0.5f * static_cast<float>(options_.power()))) {}

  std::vector<KernelParameter> parameters() const override { return parameters_; }
  int64_t features() const override { return square() ? square_feature_count(d_) : d_; }
  void forward(const FeatureRows& rows, Matrix phi, Arena&) const override {
    const float factor = rows.keys ? 1.0f : factor_ * options_.gain(rows.in.parameters, rows.head);
    const float twice = rows.keys ? factor : 2.0f * factor;  // w beside the diagonal
    for (int64_t t = 0; t < phi.rows; ++t) {
      const float* x = rows.x.row(t);
      float* to = phi.row(t);
      for (int64_t i = 0; i < d_; ++i) {
        if (!square()) {
          to[i] = factor * x[i];
          continue;
        }
        *to++ = factor * x[i] * x[i];
        for (int64_t j = i + 1; j < d_; ++j) *to++ = twice * x[i] * x[j];
      }
    }
  }
  void backward(const FeatureRows& rows, ConstMatrix, Matrix d_phi, Matrix dx, std::span<float* const> d_parameters,
                Arena&) const override {
    const float gain = rows.keys ? 1.0f : options_.gain(rows.in.parameters, rows.head);
    const float factor = rows.keys ? 1.0f : factor_, twice = rows.keys ? 1.0f : 2.0f * factor;
    double d_gain = 0.0;
    for (int64_t t = 0; t < d_phi.rows; ++t) {
      const float *x = rows.x.row(t), *g = d_phi.row(t);
      float* to = dx.row(t);
      std::fill_n(to, d_, 0.0f);
      for (int64_t i = 0; i < d_; ++i) {
        if (!square()) {
          to[i] = factor * g[i];
          continue;
        }
        to[i] += 2.0f * factor * x[i] * *g++;
        for (int64_t j = i + 1; j < d_; ++j, ++g) {
          to[i] += twice * x[j] * *g;
          to[j] += twice * x[i] * *g;
        }
      }
      for (int64_t i = 0; i < d_; ++i) {
        d_gain += x[i] * to[i];
        to[i] *= gain;
      }
    }
    // Features are of one degree: Σ x dphi/dx is that many times them (Euler).
    if (!rows.keys && options_.learnt_gain() && d_parameters[0] != nullptr) {
      d_parameters[0][rows.head] += static_cast<float>(d_gain / options_.power());
    }
  }
  Denominator denominator(float, int64_t keys) const override {
    return {static_cast<float>(options_.divisor(keys)), 0.0f};
  }

 private:
  bool square() const { return options_.power() == 2; }

  PolynomialOptions options_;
  std::vector<KernelParameter> parameters_;
  int64_t d_;
  float factor_;
};

}  // namespace

std::unique_ptr<AttentionKernel> polynomial_linear(const AttentionSpec& spec, const AttentionShape& shape) {
  std::unique_ptr<AttentionKernel> linear;
  if (spec.flag("causal")) {
    linear = make_feature_map(spec, shape, std::make_unique<PowerFeatures>(spec, shape));
  } else {
    linear = std::make_unique<PolynomialLinearKernel>(spec, shape);
  }
  return with_weights_of(polynomial_quadratic(spec, shape), std::move(linear));
}

}  // namespace lra
