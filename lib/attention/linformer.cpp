// Linformer (Wang et al. 2020, arXiv 2006.04768): softmax(Q (E K)^T / sqrt(D)) (E V), E (rank, padded length) a head,
// learned, one column a place; one E for keys and values and, unless share=none, for all layers. Chunks of tokens are
// summed in their order; their weights are made again in the backward pass.
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_rows.h"
#include "lib/ops/matmul.h"
#include "lib/util/check.h"

namespace lra {
namespace {

constexpr int64_t kLargestRank = 65536;
constexpr double kStartDeviation = 0.02;

class Linformer final : public AttentionKernel {
 public:
  Linformer(const AttentionSpec& spec, const AttentionShape& shape)
      : AttentionKernel(shape, spec),
        d_(shape.head_dim),
        rank_(spec.integer("rank")),
        length_(shape.padded_length),
        parameters_{
            {"E", {shape.heads, rank_, length_}, start_normal(kStartDeviation), true, spec.get("share") == "layers"}} {}

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  // E K and E V of each head.
  int64_t saved_floats(int64_t, float) const override { return shape().heads * 2 * rank_ * d_; }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  // Four products of N rank D forward; backward their eight and the scores again.
  double flops(int64_t tokens, bool training, float) const override {
    return (training ? 13.0 : 4.0) * 2.0 * static_cast<double>(tokens * rank_ * d_ * shape().heads);
  }
  std::string form(bool, float) const override { return "linear"; }
  bool dropout_applies() const override { return false; }
  bool has_weights() const override { return true; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override;

 private:
  struct Chunk {
    int64_t first, count;
    Matrix e;  // (rank, count), the columns of E at the tokens' places
  };
  static constexpr int64_t kChunk = 96;
  template <class Body>
  void for_each_chunk(const AttentionInput& in, int64_t head, Arena& arena, const Body& body) const {
    const Arena::Scope scope(arena);
    float* memory = arena.floats(rank_ * kChunk);
    for (int64_t first = 0; first < in.q.rows; first += kChunk) {
      const int64_t count = std::min(kChunk, in.q.rows - first);
      const Matrix e(memory, rank_, count);
      for (int64_t r = 0; r < rank_; ++r) {
        const float* row = in.parameters[0] + (head * rank_ + r) * length_;
        for (int64_t j = 0; j < count; ++j) e.row(r)[j] = row[in.places[static_cast<size_t>(first + j)]];
      }
      body(Chunk{first, count, e});
    }
  }
  template <class View>
  View rows(View x, int64_t head, const Chunk& chunk) const {
    return x.col_block(head * d_, d_).row_block(chunk.first, chunk.count);
  }
  // keys = E K, values = E V (rank, D); values may be empty.
  void project(const AttentionInput& in, int64_t head, Matrix keys, Matrix values, Arena& arena) const {
    for_each_chunk(in, head, arena, [&](const Chunk& chunk) {
      const Write write = chunk.first == 0 ? Write::kOver : Write::kAdd;
      matmul(chunk.e, Transpose::kNo, rows(in.k, head, chunk), Transpose::kNo, keys, write);
      if (!values.empty()) {
        matmul(chunk.e, Transpose::kNo, rows(in.v, head, chunk), Transpose::kNo, values, write);
      }
    });
  }
  // Weights of the chunk's queries (count, rank).
  void weigh(ConstMatrix q, ConstMatrix keys, Matrix weights) const {
    matmul(q, Transpose::kNo, keys, Transpose::kYes, weights, Write::kOver, scale());
    softmax_rows(weights);
  }
  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(d_))); }

  int64_t d_, rank_, length_;
  std::vector<KernelParameter> parameters_;
};

void Linformer::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  if (in.q.rows == 0) return;
  run_parts(in.fork, shape().heads, arena, [&](int64_t head, Arena& scratch) {
    float* memory = saved != nullptr ? saved + head * 2 * rank_ * d_ : scratch.floats(2 * rank_ * d_);
    const Matrix keys(memory, rank_, d_), values(memory + rank_ * d_, rank_, d_);
    project(in, head, keys, values, scratch);
    float* weights = scratch.floats(kChunk * rank_);
    for (int64_t first = 0; first < in.q.rows; first += kChunk) {
      const Chunk chunk = {first, std::min(kChunk, in.q.rows - first), {}};
      const Matrix p(weights, chunk.count, rank_);
      weigh(rows(in.q, head, chunk), keys, p);
      matmul(p, Transpose::kNo, values, Transpose::kNo, rows(out, head, chunk), Write::kOver);
    }
  });
}

void Linformer::backward(const AttentionInput& in, ConstMatrix, const float* saved, const AttentionGradients& gradients,
                         Arena& arena) const {
  if (in.q.rows == 0) return;
  run_parts(in.fork, shape().heads, arena, [&](int64_t head, Arena& scratch) {
    const float* memory = saved + head * 2 * rank_ * d_;
    const ConstMatrix keys(memory, rank_, d_), values(memory + rank_ * d_, rank_, d_);
    const Matrix d_keys = scratch.matrix(rank_, d_), d_values = scratch.matrix(rank_, d_);
    float *weights = scratch.floats(kChunk * rank_), *d_weights = scratch.floats(kChunk * rank_);
    for (int64_t first = 0; first < in.q.rows; first += kChunk) {
      const Chunk chunk = {first, std::min(kChunk, in.q.rows - first), {}};
      const Matrix p(weights, chunk.count, rank_), ds(d_weights, chunk.count, rank_);
      const ConstMatrix q = rows(in.q, head, chunk), d_out = rows(gradients.d_out, head, chunk);
      const Write write = first == 0 ? Write::kOver : Write::kAdd;
      weigh(q, keys, p);
      matmul(p, Transpose::kYes, d_out, Transpose::kNo, d_values, write);
      matmul(d_out, Transpose::kNo, values, Transpose::kYes, ds, Write::kOver);
      softmax_rows_backward(p, ds, ds);
      matmul(ds, Transpose::kNo, keys, Transpose::kNo, rows(gradients.dq, head, chunk), Write::kOver, scale());
      matmul(ds, Transpose::kYes, q, Transpose::kNo, d_keys, write, scale());
    }
    float* d_e = scratch.floats(rank_ * kChunk);
    for_each_chunk(in, head, scratch, [&](const Chunk& chunk) {
      const Matrix de(d_e, rank_, chunk.count);
      matmul(chunk.e, Transpose::kYes, d_keys, Transpose::kNo, rows(gradients.dk, head, chunk), Write::kOver);
      matmul(chunk.e, Transpose::kYes, d_values, Transpose::kNo, rows(gradients.dv, head, chunk), Write::kOver);
      matmul(d_keys, Transpose::kNo, rows(in.k, head, chunk), Transpose::kYes, de, Write::kOver);
      matmul(d_values, Transpose::kNo, rows(in.v, head, chunk), Transpose::kYes, de, Write::kAdd);
      for (int64_t r = 0; r < rank_; ++r) {
        float* row = gradients.d_parameters[0] + (head * rank_ + r) * length_;
        for (int64_t j = 0; j < chunk.count; ++j) {
          row[in.places[static_cast<size_t>(chunk.first + j)]] += de.row(r)[j];
        }
      }
    });
  });
}

void Linformer::visit_weights(const AttentionInput& in, Arena& arena,
                              const std::function<void(const WeightRow&)>& visit) const {
  const int64_t n = in.q.rows;
  for (int head = 0; head < shape().heads; ++head) {
    const Arena::Scope scope(arena);
    const Matrix keys = arena.matrix(rank_, d_), all_p = arena.matrix(kChunk, rank_), all = arena.matrix(kChunk, n);
    if (n > 0) project(in, head, keys, {}, arena);
    for (int64_t first = 0; first < n; first += kChunk) {
      const Chunk queries = {first, std::min(kChunk, n - first), {}};
      const Matrix p = all_p.row_block(0, queries.count), weights = all.row_block(0, queries.count);
      weigh(rows(in.q, head, queries), keys, p);
      for_each_chunk(in, head, arena, [&](const Chunk& chunk) {
        matmul(p, Transpose::kNo, chunk.e, Transpose::kNo, weights.col_block(chunk.first, chunk.count), Write::kOver);
      });
      for (int64_t i = 0; i < queries.count; ++i) {
        visit({head, first + i, {}, {weights.row(i), static_cast<size_t>(n)}, std::nullopt});
      }
    }
  }
}

std::vector<ref::Row> linformer_weights(const ref::AttentionProblem& problem, int head) {
  const int64_t d = problem.shape.head_dim, n = problem.tokens(), length = problem.shape.padded_length;
  const int64_t rank = problem.spec.integer("rank");
  const auto e = [&](int64_t r, int64_t j) {
    return problem.parameters[0][(head * rank + r) * length + problem.places[j]];
  };
  std::vector<ref::Row> keys(rank, ref::Row(d, 0.0)), weights;
  for (int64_t r = 0; r < rank; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t c = 0; c < d; ++c) keys[r][c] += e(r, j) * problem.k.row(j)[head * d + c];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    ref::Row x(rank, 0.0);
    for (int64_t r = 0; r < rank; ++r) {
      for (int64_t c = 0; c < d; ++c) x[r] += problem.q.row(i)[head * d + c] * keys[r][c];
      x[r] /= std::sqrt(static_cast<double>(d));
    }
    const ref::Row p = ref::softmax(x);
    ref::Row& row = weights.emplace_back(n);
    for (int64_t r = 0; r < rank; ++r) {
      for (int64_t j = 0; j < n; ++j) row[j] += p[r] * e(r, j);
    }
  }
  return weights;
}

void validate(const AttentionSpec& spec) {
  const int64_t rank = spec.integer("rank");
  if (rank < 1 || rank > kLargestRank) {
    throw UsageError("attention linformer: rank={} must be 1 to {}", rank, kLargestRank);
  }
}

}  // namespace

std::vector<AttentionFamily> linformer_families() {
  using Kind = AttentionOption::Kind;
  return {{.name = "linformer",
           .options = {{"rank", Kind::kInteger, "256", {}, "rows of E, what keys and values are reduced to"},
                       {"share", Kind::kChoice, "layers", {"layers", "none"}, "one E for all layers, or one a layer"}},
           .idea = "softmax(Q (E K)ᵀ / √D) E, E learned",
           .source = "arXiv 2006.04768",
           .kind = "low rank",
           .cost = "none a score; 4f + 1E for each of rank scores a token",
           .linear = "own kernel",
           .ours = "columns of E are places of the model's padded length",
           .jacobian = false,
           .indexes_places = true,
           .validate = validate,
           .make = [](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
             return std::make_unique<Linformer>(spec, shape);
           },
           .reference = ref::matrices(linformer_weights),
           .examples = {"linformer:rank=8", "linformer:rank=40,share=none"}}};
}

}  // namespace lra
