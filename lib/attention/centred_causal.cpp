// The causal rows of centred_linear.h. Tokens go by chunks. With k̄ the mean key of the chunks before, k' = k - k̄, A = Σ
// k' vᵀ, C = Σ k' k'ᵀ and V = Σ v over them, and y_ij = q_i·k'_j times the scores' scale, a row of n keys has
//   mean - q·k̄ = Σ_own y / n = m,   n sd² = qᵀ C q + n_before m² + Σ_own (y - m)²,
//   P_ij = α_i (y_ij - m_i) + β_i,   dx_ij = α_i (g_ij - mean g_i) + e_i (y_ij - m_i),   g_ij = dO_i·v_j,
// own being the keys of its chunk: inline α = β = 1 / n, e = 0; nap α = γ / (sd + 1e-3), β its bias, e = -α Σ g (y - m)
// / (n sd (sd + 1e-3)). All is affine in y, so that both passes are products with sums over chunks. Those sums are
// taken round the mean of the keys so far and moved with it: small deviations keep their digits.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/attention/centred_linear.h"
#include "lib/attention/row_kernels.h"
#include "lib/ops/matmul.h"

namespace lra {
namespace {

constexpr int64_t kChunk = 96;
constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;

void clear(Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, 0.0f);
}

void subtract_row(const float* row, ConstMatrix x, Matrix y) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) y.row(i)[c] = x.row(i)[c] - row[c];
  }
}

void add_rows_to(ConstMatrix x, float* sum) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) sum[c] += x.row(i)[c];
  }
}

// x (D, D) += factor a bᵀ.
void add_outer(float factor, const float* a, const float* b, Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) x.row(i)[j] += factor * a[i] * b[j];
  }
}

float dot(const float* a, const float* b, int64_t n) {
  float sum = 0.0f;
  for (int64_t c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

// What differs between the families.
struct Affine {
  bool nap;
  float scale;       // of the scores
  float gain, bias;  // nap

  Affine(bool is_nap, const AttentionInput& in, int head, int64_t d)
      : nap(is_nap),
        scale(is_nap ? 1.0f : 1.0f / std::sqrt(static_cast<float>(d))),
        gain(is_nap ? in.parameters[0][head] : 0.0f),
        bias(is_nap ? in.parameters[1][head] : 0.0f) {}
};

// Of a row: P = alpha (y - mean) + beta, dx = alpha (dO·v - mean_g) + slope (y - mean) over its keys.
struct Rows {
  float *alpha, *mean, *beta, *slope, *mean_g;

  Rows(int64_t tokens, Arena& arena)
      : alpha(arena.floats(tokens)),
        mean(arena.floats(tokens)),
        beta(arena.floats(tokens)),
        slope(arena.floats(tokens)),
        mean_g(arena.floats(tokens)) {}
  Rows from(int64_t first) const {
    Rows rows = *this;
    for (float** number : {&rows.alpha, &rows.mean, &rows.beta, &rows.slope, &rows.mean_g}) *number += first;
    return rows;
  }
  // What P and dx are at y = 0.
  float level(int64_t i) const { return beta[i] - alpha[i] * mean[i]; }
  float d_level(int64_t i) const { return -alpha[i] * mean_g[i] - slope[i] * mean[i]; }
};

// Sums over the keys of the chunks before.
struct Sums {
  int64_t count = 0;
  float *mean, *values;  // k̄, V (D)
  Matrix a, c;           // (D, D)

  Sums(int64_t d, Arena& arena)
      : mean(arena.floats(d)), values(arena.floats(d)), a(arena.matrix(d, d)), c(arena.matrix(d, d)) {
    std::fill_n(mean, d, 0.0f);
    std::fill_n(values, d, 0.0f);
    clear(a), clear(c);
  }
  // keys: the chunk's, less the mean.
  void add(ConstMatrix keys, ConstMatrix v, bool with_c, Arena& arena) {
    const Arena::Scope scope(arena);
    const int64_t d = keys.cols;
    matmul(keys, kYes, v, kNo, a, Write::kAdd);
    if (with_c) matmul(keys, kYes, keys, kNo, c, Write::kAdd);
    count += keys.rows;
    add_rows_to(v, values);
    float* moved = arena.floats(d);
    std::fill_n(moved, d, 0.0f);
    add_rows_to(keys, moved);
    for (int64_t i = 0; i < d; ++i) moved[i] /= static_cast<float>(count);
    add_outer(-1.0f, moved, values, a);
    if (with_c) add_outer(-static_cast<float>(count), moved, moved, c);
    for (int64_t i = 0; i < d; ++i) mean[i] += moved[i];
  }
};

// A chunk of one head.
struct Chunk {
  int64_t first, rows;
  ConstMatrix q, v;
  Matrix keys, y;  // k' (rows, D); (rows, rows), to be read up to each row's own key
};

class Head {
 public:
  Head(const AttentionInput& in, int64_t d, int index, Arena& arena)
      : tokens(in.q.rows),
        q_(in.q.col_block(index * d, d)),
        k_(in.k.col_block(index * d, d)),
        v_(in.v.col_block(index * d, d)),
        keys_(arena.matrix(kChunk, d)),
        y_(arena.floats(kChunk * kChunk)) {}

  Chunk chunk(int64_t first, const float* mean, float scale) const {
    const int64_t rows = std::min(kChunk, tokens - first);
    const Chunk chunk = {first,
                         rows,
                         q_.row_block(first, rows),
                         v_.row_block(first, rows),
                         keys_.row_block(0, rows),
                         Matrix(y_, rows, rows)};
    subtract_row(mean, k_.row_block(first, rows), chunk.keys);
    matmul(chunk.q, kNo, chunk.keys, kYes, chunk.y, Write::kOver, scale);
    return chunk;
  }
  int64_t last_chunk() const { return (tokens - 1) / kChunk * kChunk; }

  int64_t tokens;

 private:
  ConstMatrix q_, k_, v_;
  Matrix keys_;
  float* y_;
};

// y_ij -> P_ij for j <= i, 0 behind it; differences first, since alpha is large where a row's scores are alike.
void weights_of(const Rows& rows, Matrix y) {
  for (int64_t i = 0; i < y.rows; ++i) {
    float* row = y.row(i);
    for (int64_t j = 0; j <= i; ++j) row[j] = rows.alpha[i] * (row[j] - rows.mean[i]) + rows.beta[i];
    std::fill(row + i + 1, row + y.cols, 0.0f);
  }
}

// g_ij = dO_i·v_j -> dx_ij for j <= i, 0 behind it.
void score_gradients(const Rows& rows, ConstMatrix y, Matrix g) {
  for (int64_t i = 0; i < g.rows; ++i) {
    float* row = g.row(i);
    for (int64_t j = 0; j <= i; ++j) {
      row[j] = rows.alpha[i] * (row[j] - rows.mean_g[i]) + rows.slope[i] * (y.row(i)[j] - rows.mean[i]);
    }
    std::fill(row + i + 1, row + g.cols, 0.0f);
  }
}

class CentredCausalKernel final : public AttentionKernel {
 public:
  CentredCausalKernel(CentredLinear family, const AttentionKernel& quadratic)
      : AttentionKernel(quadratic.shape(), quadratic.spec()),
        nap_(family == CentredLinear::kNap),
        parameters_(quadratic.parameters()) {}

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  int64_t saved_floats(int64_t, float) const override { return 0; }

  void forward(const AttentionInput& in, Matrix out, float*, Arena& arena) const override {
    if (in.q.rows == 0) return;
    run_parts(in.fork, shape().heads, arena, [&](int64_t part, Arena& scratch) {
      const int index = static_cast<int>(part);
      const int64_t d = shape().head_dim;
      const Affine affine(nap_, in, index, d);
      const Head head(in, d, index, scratch);
      Sums sums(d, scratch);
      const Rows rows(kChunk, scratch);
      for (int64_t first = 0; first < head.tokens; first += kChunk) {
        const Chunk chunk = head.chunk(first, sums.mean, affine.scale);
        weigh_rows(affine, sums, chunk, rows, nullptr, scratch);
        const Matrix o = out.col_block(index * d, d).row_block(first, chunk.rows);
        matmul(chunk.q, kNo, sums.a, kNo, o, Write::kOver, affine.scale);
        for (int64_t i = 0; i < chunk.rows; ++i) {
          for (int64_t c = 0; c < d; ++c) o.row(i)[c] = rows.alpha[i] * o.row(i)[c] + rows.level(i) * sums.values[c];
        }
        weights_of(rows, chunk.y);
        matmul(chunk.y, kNo, chunk.v, kNo, o, Write::kAdd);
        sums.add(chunk.keys, chunk.v, nap_, scratch);
      }
    });
  }

  void backward(const AttentionInput& in, ConstMatrix, const float*, const AttentionGradients& gradients,
                Arena& arena) const override {
    if (in.q.rows == 0) return;
    run_parts(in.fork, shape().heads, arena, [&](int64_t part, Arena& scratch) {
      const int index = static_cast<int>(part);
      const Head head(in, shape().head_dim, index, scratch);
      const Rows rows(head.tokens, scratch);
      const Matrix means = scratch.matrix(head.last_chunk() / kChunk + 1, shape().head_dim);
      queries_backward(in, index, head, rows, means, gradients, scratch);
      keys_backward(in, index, head, rows, means, gradients, scratch);
    });
  }

  // A token's products with its chunk (of kChunk rows) and with sums (D, D).
  double flops(int64_t tokens, bool training, float) const override {
    const double chunk = training ? 9.0 : 2.0;
    const double sums = nap_ ? (training ? 14.0 : 4.0) : (training ? 7.0 : 2.0);
    const double d = shape().head_dim, rows = static_cast<double>(std::min(kChunk, tokens));
    return 2.0 * static_cast<double>(tokens) * d * (chunk * rows + sums * d) * shape().heads;
  }
  std::string form(bool, float) const override { return "linear"; }
  bool dropout_applies() const override { return false; }
  bool has_weights() const override { return false; }
  void visit_weights(const AttentionInput&, Arena&, const std::function<void(const WeightRow&)>&) const override {}

 private:
  // alpha, mean and beta of a chunk's rows; sd: nap's deviations, unless null.
  void weigh_rows(const Affine& affine, const Sums& sums, const Chunk& chunk, const Rows& rows, float* sd,
                  Arena& arena) const {
    const Arena::Scope scope(arena);
    const auto before = static_cast<float>(sums.count);
    float* squares = arena.floats(chunk.rows);
    if (nap_) {
      const Matrix through = arena.matrix(chunk.rows, chunk.q.cols);
      matmul(chunk.q, kNo, sums.c, kNo, through, Write::kOver);
      dot_rows(chunk.q, through, squares);
    }
    for (int64_t i = 0; i < chunk.rows; ++i) {
      const float n = before + static_cast<float>(i + 1);
      const float* y = chunk.y.row(i);
      float m = 0.0f;
      for (int64_t j = 0; j <= i; ++j) m += y[j];
      rows.mean[i] = m /= n;
      rows.alpha[i] = rows.beta[i] = 1.0f / n;
      if (!nap_) continue;
      float sum = std::max(squares[i], 0.0f) + before * m * m;
      for (int64_t j = 0; j <= i; ++j) sum += (y[j] - m) * (y[j] - m);
      const float deviation = std::sqrt(sum / n);
      rows.alpha[i] = affine.gain / (deviation + kNapEpsilon);
      rows.beta[i] = affine.bias;
      if (sd != nullptr) sd[i] = deviation;
    }
  }

  // dq, and what the way back over the keys needs: rows, and the mean key before each chunk.
  void queries_backward(const AttentionInput& in, int index, const Head& head, const Rows& all, Matrix means,
                        const AttentionGradients& gradients, Arena& arena) const {
    const Arena::Scope scope(arena);
    const int64_t d = shape().head_dim;
    const Affine affine(nap_, in, index, d);
    Sums sums(d, arena);
    const Matrix g(arena.floats(kChunk * kChunk), kChunk, kChunk);
    double d_gain = 0.0, d_bias = 0.0;
    for (int64_t first = 0; first < head.tokens; first += kChunk) {
      const Arena::Scope of_chunk(arena);
      std::copy_n(sums.mean, d, means.row(first / kChunk));
      const Chunk chunk = head.chunk(first, sums.mean, affine.scale);
      const Rows rows = all.from(first);
      float* sd = arena.floats(chunk.rows);
      weigh_rows(affine, sums, chunk, rows, sd, arena);
      const ConstMatrix d_out = gradients.d_out.col_block(index * d, d).row_block(first, chunk.rows);
      const Matrix dq = gradients.dq.col_block(index * d, d).row_block(first, chunk.rows);
      const Matrix own(g.data, chunk.rows, chunk.rows), through = arena.matrix(chunk.rows, d);
      matmul(d_out, kNo, chunk.v, kYes, own, Write::kOver);
      matmul(d_out, kNo, sums.a, kYes, dq, Write::kOver);
      if (nap_) matmul(chunk.q, kNo, sums.c, kNo, through, Write::kOver);
      for (int64_t i = 0; i < chunk.rows; ++i) {
        const float *row_g = own.row(i), *y = chunk.y.row(i);
        const auto n = static_cast<float>(sums.count + i + 1);
        float sum = dot(d_out.row(i), sums.values, d);  // Σ_j g_ij
        for (int64_t j = 0; j <= i; ++j) sum += row_g[j];
        rows.mean_g[i] = sum / n;
        rows.slope[i] = 0.0f;
        if (nap_) {
          const float m = rows.mean[i], r = 1.0f / (sd[i] + kNapEpsilon);
          // Σ_j g_ij (y_ij - m_i)
          float along = dot(chunk.q.row(i), dq.row(i), d) - m * dot(d_out.row(i), sums.values, d);
          for (int64_t j = 0; j <= i; ++j) along += row_g[j] * (y[j] - m);
          if (sd[i] > 0.0f) rows.slope[i] = -rows.alpha[i] * r * along / (n * sd[i]);
          d_gain += r * along;
          d_bias += sum;
        }
        for (int64_t c = 0; c < d; ++c) {
          const float of_c = nap_ ? rows.slope[i] * through.row(i)[c] : 0.0f;
          dq.row(i)[c] = affine.scale * (rows.alpha[i] * dq.row(i)[c] + of_c);
        }
      }
      score_gradients(rows, chunk.y, own);
      matmul(own, kNo, chunk.keys, kNo, dq, Write::kAdd, affine.scale);
      sums.add(chunk.keys, chunk.v, nap_, arena);
    }
    if (!nap_) return;
    if (gradients.d_parameters[0] != nullptr) gradients.d_parameters[0][index] += static_cast<float>(d_gain);
    if (gradients.d_parameters[1] != nullptr) gradients.d_parameters[1][index] += static_cast<float>(d_bias);
  }

  // Over the rows of the chunks behind: R = Σ α q dOᵀ, E = Σ e q qᵀ, Σ (level of P) dO, Σ (level of dx) q; levels are
  // of y as the chunk at hand has it, round the mean of the keys before it.
  void keys_backward(const AttentionInput& in, int index, const Head& head, const Rows& all, ConstMatrix means,
                     const AttentionGradients& gradients, Arena& arena) const {
    const Arena::Scope scope(arena);
    const int64_t d = shape().head_dim;
    const float scale = Affine(nap_, in, index, d).scale;
    const Matrix r = arena.matrix(d, d), e = arena.matrix(d, d), levels = arena.matrix(2, d);
    float *of_values = levels.row(0), *of_keys = levels.row(1), *moved = arena.floats(d);
    clear(r), clear(e), clear(levels);
    const Matrix g(arena.floats(kChunk * kChunk), kChunk, kChunk), scaled = arena.matrix(kChunk, d);
    for (int64_t first = head.last_chunk(); first >= 0; first -= kChunk) {
      const float* mean = means.row(first / kChunk);
      if (first < head.last_chunk()) {
        const float* old = means.row(first / kChunk + 1);
        for (int64_t c = 0; c < d; ++c) moved[c] = old[c] - mean[c];
        for (int64_t i = 0; i < d; ++i) {
          of_keys[i] -= scale * dot(e.row(i), moved, d);
          for (int64_t c = 0; c < d; ++c) of_values[c] -= scale * moved[i] * r.row(i)[c];
        }
      }
      const Chunk chunk = head.chunk(first, mean, scale);
      const Rows rows = all.from(first);
      const auto part = [&](auto x) { return x.col_block(index * d, d).row_block(first, chunk.rows); };
      const ConstMatrix d_out = part(gradients.d_out);
      const Matrix dk = part(gradients.dk), dv = part(gradients.dv);
      const Matrix own(g.data, chunk.rows, chunk.rows), times = scaled.row_block(0, chunk.rows);
      matmul(d_out, kNo, chunk.v, kYes, own, Write::kOver);
      score_gradients(rows, chunk.y, own);
      for (int64_t i = 0; i < chunk.rows; ++i) {
        std::copy_n(of_keys, d, dk.row(i));
        std::copy_n(of_values, d, dv.row(i));
      }
      matmul(chunk.v, kNo, r, kYes, dk, Write::kAdd);
      if (nap_) matmul(chunk.keys, kNo, e, kNo, dk, Write::kAdd);
      matmul(own, kYes, chunk.q, kNo, dk, Write::kAdd);
      scale_rows(scale, nullptr, 0, dk, dk);
      weights_of(rows, chunk.y);
      matmul(chunk.keys, kNo, r, kNo, dv, Write::kAdd, scale);
      matmul(chunk.y, kYes, d_out, kNo, dv, Write::kAdd);
      scale_rows(1.0f, rows.alpha, 1, chunk.q, times);
      matmul(times, kYes, d_out, kNo, r, Write::kAdd);
      if (nap_) {
        scale_rows(1.0f, rows.slope, 1, chunk.q, times);
        matmul(times, kYes, chunk.q, kNo, e, Write::kAdd);
      }
      for (int64_t i = 0; i < chunk.rows; ++i) {
        for (int64_t c = 0; c < d; ++c) {
          of_values[c] += rows.level(i) * d_out.row(i)[c];
          of_keys[c] += rows.d_level(i) * chunk.q.row(i)[c];
        }
      }
    }
  }

  bool nap_;
  std::vector<KernelParameter> parameters_;
};

}  // namespace

std::unique_ptr<AttentionKernel> make_centred_causal(CentredLinear family, const AttentionKernel& quadratic) {
  return std::make_unique<CentredCausalKernel>(family, quadratic);
}

}  // namespace lra
