// softmax(Q K̃ᵀ) Z softmax(Q̃ Kᵀ) and a depthwise convolution of V (arXiv 2102.03902); the formulas stand in
// lib/attention/nystrom.cpp and iterative_inverse.h. Z is made for all sequences and heads by batched products.
#include <cmath>
#include <utility>

#include "lib/device/convolution.h"
#include "lib/device/low_rank.h"
#include "lib/device/places.h"
#include "lib/device/team.h"

namespace lra::device {
namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;

// What kernels need of the batch and the options.
struct Facts {
  int64_t heads, d, landmarks, segment;
  const int64_t* sequence_first;
  const int32_t *places, *sequence;
};

// marks (sequences, H, L, D) = the sums of x (tokens, H*D) over the places of a segment, over the segment's length.
void average(Context c, const Facts& f, int64_t sequences, ConstMatrix x, float* marks) {
  launch_each(c.device, sequences * f.heads * f.landmarks * f.d, [=] LRA_KERNEL(int64_t i) {
    const int64_t column = i % f.d, mark = i / f.d % f.landmarks, head = i / (f.d * f.landmarks) % f.heads;
    const int64_t s = i / (f.d * f.landmarks * f.heads);
    const int64_t first = f.sequence_first[s], n = f.sequence_first[s + 1] - first;
    const int64_t begin = token_at(f.places + first, n, mark * f.segment);
    const int64_t end = token_at(f.places + first, n, (mark + 1) * f.segment);
    float sum = 0.0f;
    for (int64_t j = begin; j < end; ++j) sum += x.data[(first + j) * x.stride + head * f.d + column];
    marks[i] = sum / static_cast<float>(f.segment);
  });
}

// dx (tokens, H*D) += the way back.
void average_backward(Context c, const Facts& f, const float* d_marks, Matrix dx) {
  launch_each(c.device, dx.rows * dx.cols, [=] LRA_KERNEL(int64_t i) {
    const int64_t token = i / dx.cols, head = i % dx.cols / f.d, mark = f.places[token] / f.segment;
    dx.data[token * dx.stride + i % dx.cols] +=
        d_marks[((f.sequence[token] * f.heads + head) * f.landmarks + mark) * f.d + i % f.d] /
        static_cast<float>(f.segment);
  });
}

// `count` matrices (rows, cols) one after another.
struct Stack {
  float* data;
  int64_t count, rows, cols;

  Matrix first() const { return {data, rows, cols}; }
};

Stack take(Context c, int64_t count, int64_t rows, int64_t cols) {
  return {c.scratch.take<float>(count * rows * cols), count, rows, cols};
}
Stack take_like(Context c, const Stack& x) { return take(c, x.count, x.rows, x.cols); }
void clear(Context c, const Stack& x) { c.device.fill_zero({x.data, x.count * x.rows, x.cols}); }

// z = alpha op(x) op(y) + beta z of each.
void multiply(Context c, const Stack& x, Transpose tx, const Stack& y, Transpose ty, const Stack& z, float alpha = 1.0f,
              float beta = 0.0f) {
  Product p = product(x.first(), tx, y.first(), ty, z.first(), alpha, beta);
  p.count = x.count;
  p.a_next = x.rows * x.cols, p.b_next = y.rows * y.cols, p.c_next = z.rows * z.cols;
  c.device.multiply(p);
}

// z = diagonal I - x y of each, x and y square.
void bracket(Context c, float diagonal, const Stack& x, const Stack& y, const Stack& z) {
  multiply(c, x, kNo, y, kNo, z, -1.0f);
  const int64_t n = z.rows;
  float* to = z.data;
  launch_each(c.device, z.count * n, [=] LRA_KERNEL(int64_t i) { to[i / n * n * n + i % n * (n + 1)] += diagonal; });
}

// lib/attention/iterative_inverse.h for all matrices (L, L) of a stack.
class Inverse {
 public:
  static constexpr int kSteps = 6;

  Inverse(Context c, const Stack& m)
      : m_(m),
        x_(take_like(c, m)),
        b1_(take_like(c, m)),
        b2_(take_like(c, m)),
        b3_(take_like(c, m)),
        column_sums_(c.scratch.take<float>(m.count * m.rows)),
        largest_(c.scratch.take<float>(m.count)) {
    for (Stack& z : z_) z = take_like(c, m);
    begin(c);
    for (int step = 0; step < kSteps; ++step) {
      brackets_of(c, step);
      multiply(c, z_[step], kNo, b3_, kNo, z_[step + 1], 0.25f);
    }
  }

  const Stack& result() const { return z_[kSteps]; }

  // dm += the gradient of M from dz, which is used up.
  void backward(Context c, const Stack& dz, const Stack& dm) const {
    const Scratch::Scope scope(c.scratch);
    const Stack dx = take_like(c, m_), d_b3 = take_like(c, m_), d_b2 = take_like(c, m_);
    Stack after = dz, before = take_like(c, m_);
    for (int step = kSteps - 1; step >= 0; --step) {
      brackets_of(c, step);
      multiply(c, z_[step], kYes, after, kNo, d_b3, 0.25f);
      multiply(c, d_b3, kNo, b2_, kYes, dx, -1.0f);
      multiply(c, x_, kYes, d_b3, kNo, d_b2, -1.0f);
      multiply(c, d_b2, kNo, b1_, kYes, dx, -1.0f, 1.0f);
      multiply(c, x_, kYes, d_b2, kNo, dx, 1.0f, 1.0f);
      multiply(c, after, kNo, b3_, kYes, before, 0.25f);
      multiply(c, m_, kYes, dx, kNo, before, 1.0f, 1.0f);
      multiply(c, dx, kNo, z_[step], kYes, dm, 1.0f, 1.0f);
      std::swap(after, before);
    }
    end(c, after, dm);
  }

  // The first Z is Mᵀ over the largest column sum.
  void begin(Context c) const {
    const int64_t n = m_.rows;
    const float* m = m_.data;
    float *sums = column_sums_, *largest = largest_, *z = z_[0].data;
    launch(c.device, m_.count, threads_for(n), [=] LRA_KERNEL(Team & team) {
      const float* of = m + team.block() * n * n;
      float *to_sums = sums + team.block() * n, *to = z + team.block() * n * n;
      team.for_each(n, [=](int64_t j) {
        float sum = 0.0f;
        for (int64_t i = 0; i < n; ++i) sum += of[i * n + j];
        to_sums[j] = sum;
      });
      const float top = team.max(n, [=](int64_t j) { return to_sums[j]; });
      team.for_each(1, [=](int64_t) { largest[team.block()] = top; });
      team.for_each(n * n, [=](int64_t i) { to[i] = of[i % n * n + i / n] / top; });
    });
  }
  // Columns that share the largest sum share its gradient.
  void end(Context c, const Stack& d_first, const Stack& dm) const {
    const int64_t n = m_.rows;
    const float *sums = column_sums_, *largest = largest_, *z = z_[0].data, *dz = d_first.data;
    float* all = dm.data;
    launch(c.device, m_.count, 256, [=] LRA_KERNEL(Team & team) {
      const float *d = dz + team.block() * n * n, *of = z + team.block() * n * n, *of_sums = sums + team.block() * n;
      const float top = largest[team.block()];
      float* to = all + team.block() * n * n;
      const float along = team.sum(n * n, [=](int64_t i) { return d[i] * of[i]; });
      const float sharing = team.sum(n, [=](int64_t j) { return of_sums[j] == top ? 1.0f : 0.0f; });
      team.for_each(n * n, [=](int64_t i) {
        to[i] += d[i % n * n + i / n] / top + (of_sums[i % n] == top ? -along / top / sharing : 0.0f);
      });
    });
  }

 private:
  // x = M Z and the three brackets, from the inside: 7 I - x, 15 I - x b1, 13 I - x b2.
  void brackets_of(Context c, int step) const {
    multiply(c, m_, kNo, z_[step], kNo, x_);
    bracket(c, 7.0f, m_, z_[step], b1_);
    bracket(c, 15.0f, x_, b1_, b2_);
    bracket(c, 13.0f, x_, b2_, b3_);
  }

  Stack m_, x_, b1_, b2_, b3_;
  float *column_sums_, *largest_;
  Stack z_[kSteps + 1];
};

// Softmax over the tokens of each sequence, a column of right (tokens, H*L) at a time, and the way back.
void weigh_columns(Context c, const AttentionCall& call, Matrix right) {
  const int64_t* sequence_first = call.batch.sequence_first;
  launch(c.device, call.batch.sequences * right.cols, threads_for(call.batch.longest), [=] LRA_KERNEL(Team & team) {
    const int64_t s = team.block() / right.cols, first = sequence_first[s], n = sequence_first[s + 1] - first;
    const int64_t stride = right.stride;
    float* x = right.data + first * stride + team.block() % right.cols;
    const float top = team.max(n, [=](int64_t j) { return x[j * stride]; });
    const float sum = team.sum(n, [=](int64_t j) { return std::exp(x[j * stride] - top); });
    team.for_each(n, [=](int64_t j) { x[j * stride] = std::exp(x[j * stride] - top) / sum; });
  });
}
void weigh_columns_backward(Context c, const AttentionCall& call, ConstMatrix right, Matrix d) {
  const int64_t* sequence_first = call.batch.sequence_first;
  launch(c.device, call.batch.sequences * right.cols, threads_for(call.batch.longest), [=] LRA_KERNEL(Team & team) {
    const int64_t s = team.block() / right.cols, first = sequence_first[s], n = sequence_first[s + 1] - first;
    const int64_t stride = right.stride;
    const float* p = right.data + first * stride + team.block() % right.cols;
    float* dp = d.data + first * stride + team.block() % right.cols;
    const float dot = team.sum(n, [=](int64_t j) { return p[j * stride] * dp[j * stride]; });
    team.for_each(n, [=](int64_t j) { dp[j * stride] = p[j * stride] * (dp[j * stride] - dot); });
  });
}

class Nystrom final : public Attention {
 public:
  Nystrom(const AttentionSpec& spec, const AttentionShape& shape)
      : heads_(shape.heads),
        d_(shape.head_dim),
        landmarks_(spec.integer("landmarks")),
        taps_(spec.integer("conv")),
        segment_(shape.padded_length / landmarks_),
        scale_(1.0f / std::sqrt(static_cast<float>(d_))) {}

  bool linear() const override { return true; }
  int64_t saved_floats(int64_t) const override { return 0; }

  void forward(Context c, const AttentionCall& call, Matrix out, float*) const override {
    const Scratch::Scope scope(c.scratch);
    const Work w = work_of(c, call);
    products(call).expand(c, w.left, w.mixed.data, out);
    if (taps_ > 0) add_convolution(c, call.batch, taps(call.parameters[0]), false, call.v, out);
  }

  void backward(Context c, const AttentionCall& call, const float*, const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    const SequenceProducts of = products(call);
    const Work w = work_of(c, call);
    const Stack d_mixed = marks(c, call), d_values = marks(c, call), dq_marks = marks(c, call);
    const Stack dk_marks = marks(c, call), dz = take_like(c, w.middle), d_middle = take_like(c, w.middle);
    const Matrix d_rows = c.scratch.matrix(call.q.rows, heads_ * landmarks_);
    clear(c, d_mixed), clear(c, dk_marks), clear(c, d_middle);  // sequences without tokens add nothing

    // Left: weights of queries with landmarks.
    of.reduce(c, w.left, slopes.d_out, d_mixed.data);
    of.meet(c, slopes.d_out, w.mixed.data, d_rows);
    weigh_rows_backward(c, call.q.rows * heads_, landmarks_, w.left.data, d_rows.data);
    of.expand(c, d_rows, w.k_marks.data, slopes.dq, scale_);
    of.reduce(c, d_rows, call.q, dk_marks.data, scale_);

    // Middle: mixed = Z values.
    multiply(c, d_mixed, kNo, w.values, kYes, dz);
    multiply(c, w.inverse.result(), kYes, d_mixed, kNo, d_values);
    w.inverse.backward(c, dz, d_middle);
    weigh_rows_backward(c, w.middle.count * landmarks_, landmarks_, w.middle.data, d_middle.data);
    multiply(c, d_middle, kNo, w.k_marks, kNo, dq_marks, scale_);
    multiply(c, d_middle, kYes, w.q_marks, kNo, dk_marks, scale_, 1.0f);

    // Right: weights of landmarks with keys.
    of.expand(c, w.right, d_values.data, slopes.dv);
    of.meet(c, call.v, d_values.data, d_rows);
    weigh_columns_backward(c, call, w.right, d_rows);
    of.reduce(c, d_rows, call.k, dq_marks.data, scale_, 1.0f);
    of.expand(c, d_rows, w.q_marks.data, slopes.dk, scale_);

    average_backward(c, facts(call), dq_marks.data, slopes.dq);
    average_backward(c, facts(call), dk_marks.data, slopes.dk);
    if (taps_ == 0) return;
    add_convolution(c, call.batch, taps(call.parameters[0]), true, slopes.d_out, slopes.dv);
    if (slopes.d_parameters[0] == nullptr) return;
    const Matrix of_sequences = c.scratch.matrix(call.batch.sequences, heads_ * taps_);
    convolution_gradients(c, call.batch, taps(nullptr), call.v, slopes.d_out, of_sequences);
    add_column_sums(c, of_sequences, slopes.d_parameters[0]);
  }

 private:
  // What both passes need.
  struct Work {
    Stack q_marks, k_marks;  // (L, D) of each sequence and head
    Stack middle;            // softmax(Q̃ K̃ᵀ) (L, L)
    Inverse inverse;         // Z
    Stack values, mixed;     // softmax(Q̃ Kᵀ) V and Z times it (L, D)
    Matrix left, right;      // softmax(Q K̃ᵀ), and the columns of softmax(Q̃ Kᵀ) (tokens, H*L)
  };

  Stack marks(Context c, const AttentionCall& call) const {
    return take(c, call.batch.sequences * heads_, landmarks_, d_);
  }
  // One set of taps a head, for all sequences.
  PlaceTaps taps(const float* weight) const { return {.taps = taps_, .weight = weight, .columns = d_}; }
  SequenceProducts products(const AttentionCall& call) const { return {call, heads_, landmarks_, d_}; }
  Facts facts(const AttentionCall& call) const {
    return {heads_, d_, landmarks_, segment_, call.batch.sequence_first, call.batch.places, call.batch.sequence};
  }

  Work work_of(Context c, const AttentionCall& call) const {
    const int64_t tokens = call.q.rows;
    const SequenceProducts of = products(call);
    const Stack q_marks = marks(c, call), k_marks = marks(c, call);
    const Stack middle = take(c, q_marks.count, landmarks_, landmarks_);
    average(c, facts(call), call.batch.sequences, call.q, q_marks.data);
    average(c, facts(call), call.batch.sequences, call.k, k_marks.data);
    multiply(c, q_marks, kNo, k_marks, kYes, middle, scale_);
    weigh_rows(c, middle.count * landmarks_, landmarks_, middle.data);
    const Work w = {q_marks,
                    k_marks,
                    middle,
                    Inverse(c, middle),
                    marks(c, call),
                    marks(c, call),
                    c.scratch.matrix(tokens, heads_ * landmarks_),
                    c.scratch.matrix(tokens, heads_ * landmarks_)};
    of.meet(c, call.q, k_marks.data, w.left, scale_);
    weigh_rows(c, tokens * heads_, landmarks_, w.left.data);
    of.meet(c, call.k, q_marks.data, w.right, scale_);
    weigh_columns(c, call, w.right);
    clear(c, w.values);
    of.reduce(c, w.right, call.v, w.values.data);
    multiply(c, w.inverse.result(), kNo, w.values, kNo, w.mixed);
    return w;
  }

  int64_t heads_, d_, landmarks_, taps_, segment_;
  float scale_;
};

}  // namespace

std::unique_ptr<Attention> make_nystrom(const AttentionSpec& spec, const AttentionShape& shape) {
  return std::make_unique<Nystrom>(spec, shape);
}

}  // namespace lra::device
