#include <cmath>
#include <functional>

#include "lib/device/centred_linear.h"
#include "lib/device/feature_map.h"
#include "lib/device/team.h"

namespace lra::device {
namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;
constexpr float kEpsilon = 1e-3f;  // added to nap's deviation
constexpr Pooling kMean = {false, 0.0f}, kSum = {false, 1.0f};

// y = x - mean of its sequence: x, y (tokens, C), mean (sequences, C).
void take_mean(Context c, const RaggedBatch& batch, ConstMatrix mean, ConstMatrix x, Matrix y) {
  const int32_t* sequence = batch.sequence;
  launch_each(c.device, y.rows * y.cols, [=] LRA_KERNEL(int64_t at) {
    const int64_t i = at / y.cols, j = at % y.cols;
    y.data[i * y.stride + j] = x.data[i * x.stride + j] - mean.data[sequence[i] * mean.stride + j];
  });
}

// sd (tokens, H) = sqrt(q·through) a head.
void deviations(Context c, ConstMatrix q, ConstMatrix through, Matrix sd) {
  const int64_t heads = sd.cols, d = q.cols / heads;
  launch(c.device, q.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block() / heads, head = team.block() % heads;
    const float *a = q.data + i * q.stride + head * d, *b = through.data + i * through.stride + head * d;
    const float square = team.sum(d, [=](int64_t at) { return a[at] * b[at]; });
    team.for_each(1, [=](int64_t) { sd.data[i * sd.stride + head] = square > 0.0f ? std::sqrt(square) : 0.0f; });
  });
}

// Of nap's rows: dq: A dO -> dL/dq; scaled = γ r dO, weighted = dL/dsd / (2 sd) q, r = 1 / (sd + 1e-3); of_gain
// (tokens, H), what the gradient of γ is the sum of.
struct RowSlopes {
  Matrix dq, scaled, weighted, of_gain;
};
void nap_rows_backward(Context c, const float* gain, ConstMatrix q, ConstMatrix d_out, ConstMatrix through,
                       ConstMatrix sd, const RowSlopes& to) {
  const int64_t heads = sd.cols, d = q.cols / heads;
  const Matrix dq = to.dq, scaled = to.scaled, weighted = to.weighted, of_gain = to.of_gain;
  launch(c.device, q.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
    const int64_t i = team.block() / heads, head = team.block() % heads, from = head * d;
    const float *x = q.data + i * q.stride + from, *g = d_out.data + i * d_out.stride + from,
                *t = through.data + i * through.stride + from;
    float *dx = dq.data + i * dq.stride + from, *s = scaled.data + i * scaled.stride + from,
          *w = weighted.data + i * weighted.stride + from;
    const float along = team.sum(d, [=](int64_t at) { return x[at] * dx[at]; });
    const float deviation = sd.data[i * sd.stride + head], r = 1.0f / (deviation + kEpsilon);
    const float factor = gain[head] * r, share = deviation > 0.0f ? -factor * r * along / deviation : 0.0f;
    team.for_each(d, [=](int64_t at) {
      s[at] = factor * g[at];
      w[at] = 0.5f * share * x[at];
      dx[at] = factor * dx[at] + share * t[at];
    });
    team.for_each(1, [=](int64_t) { of_gain.data[i * of_gain.stride + head] = along * r; });
  });
}

// dv = b Σ dO of its sequence; d_sum, value_mean (sequences, H*D); of_bias (sequences, H).
void nap_bias_backward(Context c, const RaggedBatch& batch, const float* bias, ConstMatrix d_sum,
                       ConstMatrix value_mean, Matrix dv, Matrix of_bias) {
  const int64_t heads = of_bias.cols, d = dv.cols / heads;
  const int32_t* sequence = batch.sequence;
  const int64_t* first = batch.sequence_first;
  launch_each(c.device, dv.rows * dv.cols, [=] LRA_KERNEL(int64_t at) {
    const int64_t i = at / dv.cols, j = at % dv.cols;
    dv.data[i * dv.stride + j] = bias[j / d] * d_sum.data[sequence[i] * d_sum.stride + j];
  });
  launch(c.device, batch.sequences * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
    const int64_t s = team.block() / heads, head = team.block() % heads;
    const float *a = d_sum.data + s * d_sum.stride + head * d, *b = value_mean.data + s * value_mean.stride + head * d;
    const float sum = team.sum(d, [=](int64_t at) { return a[at] * b[at]; });
    const float n = static_cast<float>(first[s + 1] - first[s]);
    team.for_each(1, [=](int64_t) { of_bias.data[s * of_bias.stride + head] = n * sum; });
  });
}

// out = γ / (sd + 1e-3) out + b Σ v.
void nap_rows(Context c, const RaggedBatch& batch, const float* gain, const float* bias, ConstMatrix sd,
              ConstMatrix value_mean, Matrix out) {
  const int64_t d = out.cols / sd.cols;
  const int32_t* sequence = batch.sequence;
  const int64_t* first = batch.sequence_first;
  launch_each(c.device, out.rows * out.cols, [=] LRA_KERNEL(int64_t at) {
    const int64_t i = at / out.cols, j = at % out.cols, head = j / d, s = sequence[i];
    const float n = static_cast<float>(first[s + 1] - first[s]);
    float& o = out.data[i * out.stride + j];
    o = gain[head] / (sd.data[i * sd.stride + head] + kEpsilon) * o +
        bias[head] * n * value_mean.data[s * value_mean.stride + j];
  });
}

// What both families share; what they differ in is below.
class CentredLinear : public Attention {
 public:
  explicit CentredLinear(const AttentionShape& shape) : heads_(shape.heads), d_(shape.head_dim) {}
  bool linear() const override { return true; }
  int64_t saved_floats(int64_t) const override { return 0; }

 protected:
  // Made again in the backward pass.
  struct Work {
    Matrix keys, key_mean, value_mean;  // K - k̄ (tokens, H*D); (sequences, H*D)
    float* a;                           // (sequences, H, D, D), keysᵀ V
  };
  Work add_up(Context c, const AttentionCall& call) const {
    const int64_t sequences = call.batch.sequences, width = heads_ * d_;
    const Work work = {c.scratch.matrix(call.batch.tokens, width), c.scratch.matrix(sequences, width),
                       c.scratch.matrix(sequences, width), squares(c, call)};
    pool_forward(c, call.batch, kMean, call.k, work.key_mean);
    pool_forward(c, call.batch, kMean, call.v, work.value_mean);
    take_mean(c, call.batch, work.key_mean, call.k, work.keys);
    meet(c, call, work.keys, call.v, work.a, one);
    return work;
  }

  // A matrix (D, D) of every sequence and head.
  float* squares(Context c, const AttentionCall& call) const {
    return c.scratch.take<float>(call.batch.sequences * heads_ * d_ * d_);
  }
  // As a function of the number of tokens.
  using Factor = std::function<float(int64_t n)>;
  static float one(int64_t) { return 1.0f; }

  // to (sequences, H, D, D) = factor xᵀ y.
  void meet(Context c, const AttentionCall& call, ConstMatrix x, ConstMatrix y, float* to, const Factor& factor) const {
    std::vector<Product> products;
    for_each_sequence(call, [&](int64_t s, int64_t first, int64_t n) {
      Product p = product(x.row_block(first, n).col_block(0, d_), kYes, y.row_block(first, n).col_block(0, d_), kNo,
                          {to + s * heads_ * d_ * d_, d_, d_}, factor(n));
      p.count = heads_, p.a_next = d_, p.b_next = d_, p.c_next = d_ * d_;
      products.push_back(p);
    });
    c.device.multiply(products);
  }
  // to = factor x op(square) + beta to.
  void apply(Context c, const AttentionCall& call, ConstMatrix x, const float* square, Transpose transpose, Matrix to,
             const Factor& factor, float beta = 0.0f) const {
    std::vector<Product> products;
    for_each_sequence(call, [&](int64_t s, int64_t first, int64_t n) {
      products.push_back(by_head(heads_, x.row_block(first, n), d_, {square + s * heads_ * d_ * d_, d_, d_}, transpose,
                                 d_ * d_, to.row_block(first, n), d_, factor(n), beta));
    });
    c.device.multiply(products);
  }

  int64_t heads_, d_;

 private:
  template <class Use>
  static void for_each_sequence(const AttentionCall& call, const Use& use) {
    for (int64_t s = 0; s < call.batch.sequences; ++s) {
      if (call.batch.length[s] > 0) use(s, call.batch.first[s], call.batch.length[s]);
    }
  }
};

// o = Aᵀq / (n sqrt(D)) + v̄.
class InlineLinear final : public CentredLinear {
 public:
  using CentredLinear::CentredLinear;

  void forward(Context c, const AttentionCall& call, Matrix out, float*) const override {
    const Scratch::Scope scope(c.scratch);
    const Work work = add_up(c, call);
    pool_backward(c, call.batch, kSum, work.value_mean, out);
    apply(c, call, call.q, work.a, kNo, out, share(), 1.0f);
  }
  void backward(Context c, const AttentionCall& call, const float*, const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    const Work work = add_up(c, call);
    float* d_a = squares(c, call);
    apply(c, call, slopes.d_out, work.a, kYes, slopes.dq, share());
    meet(c, call, call.q, slopes.d_out, d_a, share());
    const Matrix d_sum = c.scratch.matrix(work.value_mean.rows, work.value_mean.cols);
    pool_forward(c, call.batch, kSum, slopes.d_out, d_sum);
    pool_backward(c, call.batch, kMean, d_sum, slopes.dv);
    apply(c, call, work.keys, d_a, kNo, slopes.dv, one, 1.0f);
    const Matrix values = c.scratch.matrix(call.v.rows, call.v.cols);
    take_mean(c, call.batch, work.value_mean, call.v, values);
    apply(c, call, values, d_a, kYes, slopes.dk, one);
  }

 private:
  Factor share() const {
    return [d = d_](int64_t n) { return 1.0f / (static_cast<float>(n) * std::sqrt(static_cast<float>(d))); };
  }
};

// o = γ Aᵀq / (sd + 1e-3) + b Σ v, sd² = qᵀ C q.
class NapLinear final : public CentredLinear {
 public:
  using CentredLinear::CentredLinear;

  void forward(Context c, const AttentionCall& call, Matrix out, float*) const override {
    const Scratch::Scope scope(c.scratch);
    const Work work = add_up(c, call);
    const Rows rows = deviations_of(c, call, work);
    apply(c, call, call.q, work.a, kNo, out, one);
    nap_rows(c, call.batch, call.parameters[0], call.parameters[1], rows.sd, work.value_mean, out);
  }

  void backward(Context c, const AttentionCall& call, const float*, const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    const int64_t tokens = call.batch.tokens, width = heads_ * d_;
    const Work work = add_up(c, call);
    const Rows rows = deviations_of(c, call, work);
    const Matrix scaled = c.scratch.matrix(tokens, width), weighted = c.scratch.matrix(tokens, width);
    apply(c, call, slopes.d_out, work.a, kYes, slopes.dq, one);
    const Matrix of_gain = c.scratch.matrix(tokens, heads_), of_bias = c.scratch.matrix(call.batch.sequences, heads_),
                 d_sum = c.scratch.matrix(call.batch.sequences, width);
    nap_rows_backward(c, call.parameters[0], call.q, slopes.d_out, rows.through, rows.sd,
                      {slopes.dq, scaled, weighted, of_gain});
    pool_forward(c, call.batch, kSum, slopes.d_out, d_sum);
    nap_bias_backward(c, call.batch, call.parameters[1], d_sum, work.value_mean, slopes.dv, of_bias);
    if (slopes.d_parameters[0] != nullptr) add_column_sums(c, of_gain, slopes.d_parameters[0]);
    if (slopes.d_parameters[1] != nullptr) add_column_sums(c, of_bias, slopes.d_parameters[1]);
    float *d_a = squares(c, call), *d_covariance = squares(c, call);
    meet(c, call, call.q, scaled, d_a, one);
    meet(c, call, call.q, weighted, d_covariance, one);
    apply(c, call, work.keys, d_a, kNo, slopes.dv, one, 1.0f);
    const Matrix values = scaled;
    take_mean(c, call.batch, work.value_mean, call.v, values);
    apply(c, call, values, d_a, kYes, slopes.dk, one);
    apply(
        c, call, work.keys, d_covariance, kNo, slopes.dk, [](int64_t n) { return 2.0f / static_cast<float>(n); }, 1.0f);
  }

 private:
  struct Rows {
    Matrix through, sd;  // Q C (tokens, H*D); (tokens, H)
  };
  Rows deviations_of(Context c, const AttentionCall& call, const Work& work) const {
    const Rows rows = {c.scratch.matrix(call.batch.tokens, heads_ * d_), c.scratch.matrix(call.batch.tokens, heads_)};
    float* covariance = squares(c, call);
    meet(c, call, work.keys, work.keys, covariance, [](int64_t n) { return 1.0f / static_cast<float>(n); });
    apply(c, call, call.q, covariance, kNo, rows.through, one);
    deviations(c, call.q, rows.through, rows.sd);
    return rows;
  }
};

}  // namespace

std::unique_ptr<Attention> inline_linear(const AttentionShape& shape) { return std::make_unique<InlineLinear>(shape); }
std::unique_ptr<Attention> nap_linear(const AttentionShape& shape) { return std::make_unique<NapLinear>(shape); }

}  // namespace lra::device
