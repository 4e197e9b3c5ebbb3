// Nyströmformer (Xiong et al. 2021, arXiv 2102.03902): P = softmax(Q K̃^T) Z softmax(Q̃ K^T) with queries and keys over
// D^(1/4) and landmarks Q̃, K̃, means over equal segments of the padded sequence with 0 where there is no token. Z
// approximates the inverse of M = softmax(Q̃ K̃^T) in 6 steps Z ← Z (13 I - MZ (15 I - MZ (7 I - MZ))) / 4 from M^T over
// its largest column sum. A depthwise convolution of V over the places is added.
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_rows.h"
#include "lib/attention/iterative_inverse.h"
#include "lib/attention/place_convolution.h"
#include "lib/ops/matmul.h"
#include "lib/util/check.h"

namespace lra {
namespace {

constexpr int64_t kMostTaps = 4095, kMostLandmarks = 65536;

void product(ConstMatrix a, ConstMatrix b, Matrix c) { matmul(a, Transpose::kNo, b, Transpose::kNo, c, Write::kOver); }

class Nystrom final : public AttentionKernel {
 public:
  Nystrom(const AttentionSpec& spec, const AttentionShape& shape)
      : AttentionKernel(shape, spec),
        d_(shape.head_dim),
        landmarks_(spec.integer("landmarks")),
        taps_(spec.integer("conv")),
        scale_(static_cast<float>(std::pow(static_cast<double>(d_), -0.5))) {
    if (taps_ == 0) return;
    parameters_ = {
        {"conv.weight", {shape.heads, 1, taps_, 1}, start_uniform(1.0 / std::sqrt(static_cast<double>(taps_)))}};
  }

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  // Nothing: all is made again.
  int64_t saved_floats(int64_t, float) const override { return 0; }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  double flops(int64_t tokens, bool training, float dropout) const override;
  std::string form(bool, float) const override { return "linear"; }
  bool dropout_applies() const override { return false; }
  bool has_weights() const override { return true; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override;

 private:
  // What both passes need of a head.
  struct Head {
    ConstMatrix q, k, v;
    Matrix q_marks, k_marks;  // (L, D)
    Matrix middle;            // softmax(Q̃ K̃^T) (L, L)
    Matrix right;             // softmax(Q̃ K^T) (L, N)
  };
  Head head_of(const AttentionInput& in, int64_t index, Arena& arena) const;
  // Softmax rows of scale * a b^T.
  void weigh(ConstMatrix a, ConstMatrix b, Matrix weights) const {
    matmul(a, Transpose::kNo, b, Transpose::kYes, weights, Write::kOver, scale_);
    softmax_rows(weights);
  }
  // From the gradient dp of p = softmax(scale a b^T), overwritten: da and db += their parts.
  void pull_back(ConstMatrix p, Matrix dp, ConstMatrix a, Matrix da, ConstMatrix b, Matrix db) const {
    softmax_rows_backward(p, dp, dp);
    matmul(dp, Transpose::kNo, b, Transpose::kNo, da, Write::kAdd, scale_);
    matmul(dp, Transpose::kYes, a, Transpose::kNo, db, Write::kAdd, scale_);
  }
  int64_t segment(const AttentionInput& in, int64_t token) const {
    return in.places[static_cast<size_t>(token)] / (shape().padded_length / landmarks_);
  }
  // The mean over the places of a segment is its sum times this.
  float share() const { return static_cast<float>(landmarks_) / static_cast<float>(shape().padded_length); }
  template <class View>
  View columns(View x, int64_t index) const {
    return x.col_block(index * d_, d_);
  }
  static constexpr int64_t kChunk = 96;
  template <class Body>
  static void for_each_chunk(int64_t tokens, const Body& body) {
    for (int64_t first = 0; first < tokens; first += kChunk) body(first, std::min(kChunk, tokens - first));
  }

  int64_t d_, landmarks_, taps_;
  float scale_;  // of products of queries and keys
  std::vector<KernelParameter> parameters_;
};

Nystrom::Head Nystrom::head_of(const AttentionInput& in, int64_t index, Arena& arena) const {
  Head head = {columns(in.q, index),
               columns(in.k, index),
               columns(in.v, index),
               arena.matrix(landmarks_, d_),
               arena.matrix(landmarks_, d_),
               arena.matrix(landmarks_, landmarks_),
               arena.matrix(landmarks_, in.q.rows)};
  const auto average = [&](ConstMatrix x, Matrix marks) {
    std::fill_n(marks.data, landmarks_ * d_, 0.0f);
    for (int64_t i = 0; i < x.rows; ++i) {
      float* mark = marks.row(segment(in, i));
      for (int64_t c = 0; c < d_; ++c) mark[c] += share() * x.row(i)[c];
    }
  };
  average(head.q, head.q_marks);
  average(head.k, head.k_marks);
  weigh(head.q_marks, head.k_marks, head.middle);
  weigh(head.q_marks, head.k, head.right);
  return head;
}

void Nystrom::forward(const AttentionInput& in, Matrix out, float*, Arena& arena) const {
  const int64_t n = in.q.rows;
  if (n == 0) return;
  run_parts(in.fork, shape().heads, arena, [&](int64_t index, Arena& scratch) {
    const Head head = head_of(in, index, scratch);
    const IterativeInverse inverse(head.middle, scratch);
    const Matrix values = scratch.matrix(landmarks_, d_), mixed = scratch.matrix(landmarks_, d_);
    const Matrix all_left = scratch.matrix(kChunk, landmarks_), y = columns(out, index);
    product(head.right, head.v, values);
    product(inverse.result(), values, mixed);
    for_each_chunk(n, [&](int64_t first, int64_t count) {
      const Matrix left = all_left.row_block(0, count);
      weigh(head.q.row_block(first, count), head.k_marks, left);
      product(left, mixed, y.row_block(first, count));
    });
    if (taps_ == 0) return;
    const float* weights = in.parameters[0] + index * taps_;
    for_each_neighbour({taps_}, in.places, [&](int64_t tap, int64_t i, int64_t j) {
      for (int64_t c = 0; c < d_; ++c) y.row(i)[c] += weights[tap] * head.v.row(j)[c];
    });
  });
}

void Nystrom::backward(const AttentionInput& in, ConstMatrix, const float*, const AttentionGradients& gradients,
                       Arena& arena) const {
  const int64_t n = in.q.rows, marks = landmarks_;
  if (n == 0) return;
  run_parts(in.fork, shape().heads, arena, [&](int64_t index, Arena& scratch) {
    const Head head = head_of(in, index, scratch);
    const IterativeInverse inverse(head.middle, scratch);
    const ConstMatrix d_out = columns(gradients.d_out, index);
    const Matrix dq = columns(gradients.dq, index), dk = columns(gradients.dk, index);
    const Matrix dv = columns(gradients.dv, index);
    const Matrix values = scratch.matrix(marks, d_), mixed = scratch.matrix(marks, d_);
    const Matrix d_values = scratch.matrix(marks, d_), d_mixed = scratch.matrix(marks, d_);
    const Matrix dq_marks = scratch.matrix(marks, d_), dk_marks = scratch.matrix(marks, d_);
    const Matrix all_left = scratch.matrix(kChunk, marks), all_d_left = scratch.matrix(kChunk, marks);
    const Matrix dz = scratch.matrix(marks, marks), d_middle = scratch.matrix(marks, marks);
    const Matrix d_right = scratch.matrix(marks, n);
    const auto clear = [](Matrix x) {
      for (int64_t i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, 0.0f);
    };
    clear(dq), clear(dk), clear(dq_marks), clear(dk_marks), clear(d_middle);
    product(head.right, head.v, values);
    product(inverse.result(), values, mixed);
    for_each_chunk(n, [&](int64_t first, int64_t count) {
      const Matrix left = all_left.row_block(0, count), d_left = all_d_left.row_block(0, count);
      const ConstMatrix q = head.q.row_block(first, count), d_rows = d_out.row_block(first, count);
      weigh(q, head.k_marks, left);
      matmul(left, Transpose::kYes, d_rows, Transpose::kNo, d_mixed, first == 0 ? Write::kOver : Write::kAdd);
      matmul(d_rows, Transpose::kNo, mixed, Transpose::kYes, d_left, Write::kOver);
      pull_back(left, d_left, q, dq.row_block(first, count), head.k_marks, dk_marks);
    });
    matmul(d_mixed, Transpose::kNo, values, Transpose::kYes, dz, Write::kOver);
    matmul(inverse.result(), Transpose::kYes, d_mixed, Transpose::kNo, d_values, Write::kOver);
    inverse.backward(dz, d_middle, scratch);
    pull_back(head.middle, d_middle, head.q_marks, dq_marks, head.k_marks, dk_marks);
    matmul(head.right, Transpose::kYes, d_values, Transpose::kNo, dv, Write::kOver);
    matmul(d_values, Transpose::kNo, head.v, Transpose::kYes, d_right, Write::kOver);
    pull_back(head.right, d_right, head.q_marks, dq_marks, head.k, dk);
    for (int64_t i = 0; i < n; ++i) {
      const float *of_q = dq_marks.row(segment(in, i)), *of_k = dk_marks.row(segment(in, i));
      for (int64_t c = 0; c < d_; ++c) {
        dq.row(i)[c] += share() * of_q[c];
        dk.row(i)[c] += share() * of_k[c];
      }
    }
    if (taps_ == 0) return;
    const float* weights = in.parameters[0] + index * taps_;
    float* d_weights = gradients.d_parameters[0] + index * taps_;
    for_each_neighbour({taps_}, in.places, [&](int64_t tap, int64_t i, int64_t j) {
      const float *g = d_out.row(i), *v = head.v.row(j);
      float sum = 0.0f;
      for (int64_t c = 0; c < d_; ++c) sum += g[c] * v[c];
      for (int64_t c = 0; c < d_; ++c) dv.row(j)[c] += weights[tap] * g[c];
      d_weights[tap] += sum;
    });
  });
}

void Nystrom::visit_weights(const AttentionInput& in, Arena& arena,
                            const std::function<void(const WeightRow&)>& visit) const {
  const int64_t n = in.q.rows;
  if (n == 0) return;
  for (int index = 0; index < shape().heads; ++index) {
    const Arena::Scope scope(arena);
    const Head head = head_of(in, index, arena);
    const IterativeInverse inverse(head.middle, arena);
    const Matrix all_left = arena.matrix(kChunk, landmarks_), all_inner = arena.matrix(kChunk, landmarks_);
    const Matrix all_weights = arena.matrix(kChunk, n);
    for_each_chunk(n, [&](int64_t first, int64_t count) {
      const Matrix left = all_left.row_block(0, count), inner = all_inner.row_block(0, count);
      const Matrix weights = all_weights.row_block(0, count);
      weigh(head.q.row_block(first, count), head.k_marks, left);
      product(left, inverse.result(), inner);
      product(inner, head.right, weights);
      for (int64_t i = 0; i < count; ++i) {
        visit({index, first + i, {}, {weights.row(i), static_cast<size_t>(n)}, std::nullopt});
      }
    });
  }
}

double Nystrom::flops(int64_t tokens, bool training, float) const {
  const double n = static_cast<double>(tokens), l = static_cast<double>(landmarks_), d = static_cast<double>(d_);
  constexpr double steps = IterativeInverse::kSteps;
  // Scores and values left and right; M, its inverse (4 products a step) and Z (right V); the convolution.
  const double landmark_products = 2.0 * l * l * d, inverse = 2.0 * l * l * l;
  const double convolution = 2.0 * n * static_cast<double>(taps_) * d;
  const double forward = 4.0 * 2.0 * n * l * d + 2.0 * landmark_products + 4.0 * steps * inverse + convolution;
  // The same again but for left · mixed and the convolution; then two gradients of every product.
  const double again = 3.0 * 2.0 * n * l * d + 2.0 * landmark_products + 4.0 * steps * inverse;
  const double back = 8.0 * 2.0 * n * l * d + 4.0 * landmark_products + 11.0 * steps * inverse + 2.0 * convolution;
  return shape().heads * (forward + (training ? again + back : 0.0));
}

using Grid = std::vector<ref::Row>;

Grid times(const Grid& a, const Grid& b) {
  Grid c(a.size(), ref::Row(b.at(0).size(), 0.0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b[k].size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Grid softmax_of_products(const Grid& a, const Grid& b) {
  Grid weights;
  for (const ref::Row& row : a) {
    ref::Row x(b.size(), 0.0);
    for (size_t j = 0; j < b.size(); ++j) {
      for (size_t c = 0; c < row.size(); ++c) x[j] += row[c] * b[j][c];
    }
    weights.push_back(ref::softmax(x));
  }
  return weights;
}

Grid reference_inverse(const Grid& m) {
  const size_t l = m.size();
  const auto from_diagonal = [&](double diagonal, Grid x) {
    for (size_t i = 0; i < l; ++i) {
      for (size_t j = 0; j < l; ++j) x[i][j] = (i == j ? diagonal : 0.0) - x[i][j];
    }
    return x;
  };
  double largest = 0.0;
  for (size_t j = 0; j < l; ++j) {
    double sum = 0.0;
    for (size_t i = 0; i < l; ++i) sum += m[i][j];
    largest = std::max(largest, sum);
  }
  Grid z(l, ref::Row(l));
  for (size_t i = 0; i < l; ++i) {
    for (size_t j = 0; j < l; ++j) z[j][i] = m[i][j] / largest;
  }
  for (int step = 0; step < IterativeInverse::kSteps; ++step) {
    const Grid x = times(m, z);
    z = times(z, from_diagonal(13.0, times(x, from_diagonal(15.0, times(x, from_diagonal(7.0, x))))));
    for (ref::Row& row : z) {
      for (double& value : row) value /= 4.0;
    }
  }
  return z;
}

ref::Row nystrom_reference(const ref::AttentionProblem& problem) {
  const int64_t d = problem.shape.head_dim, n = problem.tokens(), width = d * problem.shape.heads;
  const int64_t marks = problem.spec.integer("landmarks"), taps = problem.spec.integer("conv");
  const int64_t segment = problem.shape.padded_length / marks;
  ref::Row out(n * width, 0.0);
  if (n == 0) return out;
  for (int64_t head = 0; head < problem.shape.heads; ++head) {
    const auto grid = [&](MatrixView<const double> x, double scale) {
      Grid rows(n, ref::Row(d));
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t c = 0; c < d; ++c) rows[i][c] = scale * x.row(i)[head * d + c];
      }
      return rows;
    };
    const auto landmarks = [&](const Grid& x) {
      Grid means(marks, ref::Row(d, 0.0));
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t c = 0; c < d; ++c) {
          means[problem.places[i] / segment][c] += x[i][c] / static_cast<double>(segment);
        }
      }
      return means;
    };
    const double scale = std::pow(static_cast<double>(d), -0.25);
    const Grid q = grid(problem.q, scale), k = grid(problem.k, scale), v = grid(problem.v, 1.0);
    const Grid q_marks = landmarks(q), k_marks = landmarks(k);
    const Grid values = times(softmax_of_products(q_marks, k), v);
    const Grid inverse = reference_inverse(softmax_of_products(q_marks, k_marks));
    const Grid y = times(softmax_of_products(q, k_marks), times(inverse, values));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < d; ++c) out[i * width + head * d + c] = y[i][c];
      for (int64_t j = 0; j < n; ++j) {
        const int64_t tap = problem.places[j] - problem.places[i] + taps / 2;
        if (tap < 0 || tap >= taps) continue;
        for (int64_t c = 0; c < d; ++c) {
          out[i * width + head * d + c] += problem.parameters[0][head * taps + tap] * v[j][c];
        }
      }
    }
  }
  return out;
}

void validate(const AttentionSpec& spec) {
  const int64_t landmarks = spec.integer("landmarks"), taps = spec.integer("conv");
  if (landmarks < 1 || landmarks > kMostLandmarks) {
    throw UsageError("attention nystrom: landmarks={} must be 1 to {}", landmarks, kMostLandmarks);
  }
  if (taps != 0 && (taps < 0 || taps > kMostTaps || taps % 2 == 0)) {
    throw UsageError("attention nystrom: conv={} must be 0 (none) or an odd number of taps up to {}", taps, kMostTaps);
  }
}

}  // namespace

std::vector<AttentionFamily> nystrom_families() {
  using Kind = AttentionOption::Kind;
  return {{.name = "nystrom",
           .options = {{"landmarks", Kind::kInteger, "128", {}, "segments of the padded length, which they divide"},
                       {"conv", Kind::kInteger, "35", {}, "odd taps of the convolution of V that is added; 0: none"}},
           .idea = "softmax(Q K̃ᵀ) Z softmax(Q̃ Kᵀ), Z ≈ softmax(Q̃ K̃ᵀ)⁻¹, and a convolution of V",
           .source = "arXiv 2102.03902",
           .kind = "low rank",
           .cost = "none a score; 8f + 2E for each of landmarks scores a token",
           .linear = "approximate",
           .ours = "largest column sum of a head, the source's of the batch; segments of the model's padded length",
           .jacobian = false,
           .convolves = [](const AttentionSpec& spec) { return spec.integer("conv") > 0; },
           .indexes_places = true,
           .validate = validate,
           .make = [](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
             const int64_t landmarks = spec.integer("landmarks");
             if (shape.padded_length % landmarks != 0) {
               throw UsageError("attention nystrom: landmarks={} must divide the padded length {}", landmarks,
                                shape.padded_length);
             }
             return std::make_unique<Nystrom>(spec, shape);
           },
           .reference = nystrom_reference,
           .examples = {"nystrom:landmarks=32", "nystrom:landmarks=8,conv=0", "nystrom:landmarks=4,conv=5+xsa"}}};
}

}  // namespace lra
