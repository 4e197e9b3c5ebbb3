#include "lib/attention/feature_map.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/row_kernels.h"
#include "lib/attention/tile_matmul.h"

namespace lra {
namespace {

constexpr int64_t kChunk = 96;
static_assert(kChunk % kTileRows == 0);

int64_t whole_lines(int64_t floats) { return (floats + 15) / 16 * 16; }

struct Chunk {
  int64_t first, count;
};

template <class Body>
void for_each_chunk(int64_t tokens, const Body& body) {
  for (int64_t first = 0; first < tokens; first += kChunk) body(Chunk{first, std::min(kChunk, tokens - first)});
}

template <class Body>
void for_each_chunk_backwards(int64_t tokens, const Body& body) {
  for (int64_t first = (tokens - 1) / kChunk * kChunk; first >= 0; first -= kChunk) {
    body(Chunk{first, std::min(kChunk, tokens - first)});
  }
}

void clear(Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, 0.0f);
}

// The keys behind a query's own weigh nothing; both are tokens of one chunk.
void clear_later_keys(Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) std::fill(x.row(i) + i + 1, x.row(i) + x.cols, 0.0f);
}

// One head, and scratch for a chunk of it. W is D + 1 in whole vectors; columns beyond D + 1 are 0.
class Head {
 public:
  Head(const FeatureMap& map, const AttentionInput& in, int index, int64_t d, const float* context, Arena& arena)
      : map_(map),
        in_(in),
        index_(index),
        context_(context),
        d_(d),
        features_(map.features()),
        q_(in.q.col_block(index * d, d)),
        k_(in.k.col_block(index * d, d)),
        v_(in.v.col_block(index * d, d)),
        phi_(rows_of_features(arena)),
        psi_(rows_of_features(arena)),
        values_(arena.matrix(kChunk, padded_width(d + 1))),
        arena_(arena) {
    clear(values_);
  }

  int64_t tokens() const { return in_.q.rows; }
  int64_t features() const { return features_; }
  int64_t width() const { return values_.cols; }

  // Rows apart by an odd number of cache lines, so that they do not share cache sets.
  Matrix rows_of_features(Arena& arena) const {
    const int64_t stride = (whole_lines(features_) / 16 | 1) * 16;
    return {arena.floats(kChunk * stride), kChunk, features_, stride};
  }

  // Both overwrite what the chunk before left.
  Matrix phi(Chunk chunk) const { return fill(chunk, false, phi_); }
  Matrix psi(Chunk chunk) const { return fill(chunk, true, psi_); }
  // [v, 1] (count, W)
  Matrix values(Chunk chunk) const {
    const Matrix values = values_.row_block(0, chunk.count);
    scale_rows(1.0f, nullptr, 0, v_.row_block(chunk.first, chunk.count), values.col_block(0, d_));
    for (int64_t i = 0; i < chunk.count; ++i) values.row(i)[d_] = 1.0f;
    return values;
  }
  // x beyond [v, 1] is 0: this is all that products over W have to read.
  ConstMatrix inner(ConstMatrix x) const { return x.col_block(0, d_ + 1); }

  // dq or dk of the chunk from the gradient of its features.
  void pull_back(Chunk chunk, bool keys, ConstMatrix phi, Matrix d_phi, const AttentionGradients& gradients) const {
    const Arena::Scope scope(arena_);
    const Matrix dx = (keys ? gradients.dk : gradients.dq).col_block(index_ * d_, d_);
    map_.backward(rows(chunk, keys), phi, d_phi, dx.row_block(chunk.first, chunk.count), gradients.d_parameters,
                  arena_);
  }

 private:
  FeatureRows rows(Chunk chunk, bool keys) const {
    return {in_, index_, keys, chunk.first, (keys ? k_ : q_).row_block(chunk.first, chunk.count), context_};
  }
  Matrix fill(Chunk chunk, bool keys, Matrix to) const {
    const Arena::Scope scope(arena_);
    const Matrix phi = to.row_block(0, chunk.count);
    map_.forward(rows(chunk, keys), phi, arena_);
    return phi;
  }

  const FeatureMap& map_;
  const AttentionInput& in_;
  int index_;
  const float* context_;
  int64_t d_, features_;
  ConstMatrix q_, k_, v_;
  Matrix phi_, psi_, values_;
  Arena& arena_;
};

class FeatureMapKernel final : public AttentionKernel {
 public:
  FeatureMapKernel(const AttentionShape& shape, const AttentionSpec& spec, std::unique_ptr<FeatureMap> map)
      : AttentionKernel(shape, spec),
        map_(std::move(map)),
        parameters_(map_->parameters()),
        causal_(spec.flag("causal")) {}

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  int64_t saved_floats(int64_t tokens, float) const override { return shape().heads * Saved::floats(*this, tokens); }
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
  // What forward leaves of a head: its context, z of each query, and A unless rows are causal.
  struct Saved {
    float *context, *z;
    Matrix sums;

    static int64_t floats(const FeatureMapKernel& kernel, int64_t tokens) {
      return whole_lines(kernel.map_->context_floats()) + whole_lines(tokens) +
             (kernel.causal_ ? 0 : kernel.sums_floats());
    }
    Saved(const FeatureMapKernel& kernel, float* memory, int64_t tokens)
        : context(memory), z(context + whole_lines(kernel.map_->context_floats())) {
      sums = Matrix(kernel.causal_ ? nullptr : z + whole_lines(tokens), kernel.map_->features(), kernel.width());
    }
  };
  int64_t width() const { return padded_width(shape().head_dim + 1); }
  int64_t sums_floats() const { return map_->features() * width(); }
  int64_t keys(int64_t query, int64_t tokens) const { return causal_ ? query + 1 : tokens; }

  void head_forward(const AttentionInput& in, int index, Matrix out, float* memory, Arena& arena) const;
  void head_backward(const AttentionInput& in, int index, ConstMatrix out, float* memory,
                     const AttentionGradients& gradients, Arena& arena) const;

  std::unique_ptr<FeatureMap> map_;
  std::vector<KernelParameter> parameters_;
  bool causal_;
};

void FeatureMapKernel::head_forward(const AttentionInput& in, int index, Matrix out, float* memory,
                                    Arena& arena) const {
  const int64_t n = in.q.rows, d = shape().head_dim;
  const Saved saved(*this, memory != nullptr ? memory : arena.floats(Saved::floats(*this, n)), n);
  map_->prepare(in, index, saved.context, arena);
  const Head head(*map_, in, index, d, saved.context, arena);
  const Matrix sums = causal_ ? arena.matrix(head.features(), head.width()) : saved.sums;
  const Matrix all_y = arena.matrix(kChunk, head.width());
  clear(sums);
  // y (count, W): numerators and, in column D, z.
  const auto finish = [&](Chunk chunk, ConstMatrix y) {
    float factors[kChunk];
    for (int64_t i = 0; i < chunk.count; ++i) {
      const int64_t query = chunk.first + i;
      saved.z[query] = y.row(i)[d];
      factors[i] = 1.0f / map_->denominator(saved.z[query], keys(query, n)).value;
    }
    scale_rows(1.0f, factors, 1, y.col_block(0, d), out.col_block(index * d, d).row_block(chunk.first, chunk.count));
  };
  if (causal_) {
    const Matrix all_weights = arena.matrix(kChunk, kChunk);
    for_each_chunk(n, [&](Chunk chunk) {
      const Matrix phi = head.phi(chunk), psi = head.psi(chunk), values = head.values(chunk);
      const Matrix y = all_y.row_block(0, chunk.count);
      const Matrix weights(all_weights.data, chunk.count, chunk.count);
      matmul(phi, Transpose::kNo, psi, Transpose::kYes, weights, Write::kOver);
      clear_later_keys(weights);
      tile_matmul(phi, Transpose::kNo, sums, y, Write::kOver);
      tile_matmul(weights, Transpose::kNo, values, y, Write::kAdd);
      finish(chunk, y);
      tile_matmul(psi, Transpose::kYes, values, sums, Write::kAdd);
    });
    return;
  }
  for_each_chunk(
      n, [&](Chunk chunk) { tile_matmul(head.psi(chunk), Transpose::kYes, head.values(chunk), sums, Write::kAdd); });
  for_each_chunk(n, [&](Chunk chunk) {
    const Matrix y = all_y.row_block(0, chunk.count);
    tile_matmul(head.phi(chunk), Transpose::kNo, sums, y, Write::kOver);
    finish(chunk, y);
  });
}

// With E = [dO / D, δ], δ_i = -D'(z_i) (dO_i·O_i) / D_i, the gradient of all that y holds: dphi = E A^T,
// dA = sum_i phi_i E_i^T, dpsi = [v, 1] dA^T, dv = psi dA.
void FeatureMapKernel::head_backward(const AttentionInput& in, int index, ConstMatrix out, float* memory,
                                     const AttentionGradients& gradients, Arena& arena) const {
  const int64_t n = in.q.rows, d = shape().head_dim;
  const Saved saved(*this, memory, n);
  const Head head(*map_, in, index, d, saved.context, arena);
  const ConstMatrix d_out = gradients.d_out.col_block(index * d, d);
  const Matrix sums = causal_ ? arena.matrix(head.features(), head.width()) : saved.sums;
  const Matrix d_sums = arena.matrix(head.features(), head.width());
  const Matrix all_e = arena.matrix(kChunk, head.width()), all_dv = arena.matrix(kChunk, head.width());
  const Matrix all_d_phi = head.rows_of_features(arena);
  clear(all_e), clear(d_sums);
  const auto e_of = [&](Chunk chunk) {
    const Matrix e = all_e.row_block(0, chunk.count);
    const ConstMatrix d_rows = d_out.row_block(chunk.first, chunk.count);
    float dots[kChunk], factors[kChunk];
    dot_rows(d_rows, out.col_block(index * d, d).row_block(chunk.first, chunk.count), dots);
    for (int64_t i = 0; i < chunk.count; ++i) {
      const int64_t query = chunk.first + i;
      const FeatureMap::Denominator denominator = map_->denominator(saved.z[query], keys(query, n));
      factors[i] = 1.0f / denominator.value;
      e.row(i)[d] = -denominator.slope * dots[i] * factors[i];
    }
    scale_rows(1.0f, factors, 1, d_rows, e.col_block(0, d));
    return e;
  };
  const auto write_dv = [&](Chunk chunk, ConstMatrix dv) {
    scale_rows(1.0f, nullptr, 0, dv.col_block(0, d),
               gradients.dv.col_block(index * d, d).row_block(chunk.first, chunk.count));
  };
  if (!causal_) {
    for_each_chunk(n, [&](Chunk chunk) {
      const Matrix phi = head.phi(chunk), e = e_of(chunk), d_phi = all_d_phi.row_block(0, chunk.count);
      matmul(head.inner(e), Transpose::kNo, head.inner(sums), Transpose::kYes, d_phi, Write::kOver);
      tile_matmul(phi, Transpose::kYes, e, d_sums, Write::kAdd);
      head.pull_back(chunk, false, phi, d_phi, gradients);
    });
    for_each_chunk(n, [&](Chunk chunk) {
      const Matrix psi = head.psi(chunk), values = head.values(chunk);
      const Matrix d_psi = all_d_phi.row_block(0, chunk.count), dv = all_dv.row_block(0, chunk.count);
      matmul(head.inner(values), Transpose::kNo, head.inner(d_sums), Transpose::kYes, d_psi, Write::kOver);
      tile_matmul(psi, Transpose::kNo, d_sums, dv, Write::kOver);
      write_dv(chunk, dv);
      head.pull_back(chunk, true, psi, d_psi, gradients);
    });
    return;
  }
  // A of the chunks before is summed again on the way to the end, dA of those behind on the way back.
  const Matrix all_weights = arena.matrix(kChunk, kChunk), all_d_weights = arena.matrix(kChunk, kChunk);
  const auto d_weights_of = [&](ConstMatrix e, ConstMatrix values) {
    const Matrix d_weights(all_d_weights.data, e.rows, e.rows);
    matmul(head.inner(e), Transpose::kNo, head.inner(values), Transpose::kYes, d_weights, Write::kOver);
    clear_later_keys(d_weights);
    return d_weights;
  };
  clear(sums);
  for_each_chunk(n, [&](Chunk chunk) {
    const Matrix phi = head.phi(chunk), psi = head.psi(chunk), values = head.values(chunk), e = e_of(chunk);
    const Matrix d_phi = all_d_phi.row_block(0, chunk.count);
    matmul(head.inner(e), Transpose::kNo, head.inner(sums), Transpose::kYes, d_phi, Write::kOver);
    matmul(d_weights_of(e, values), Transpose::kNo, psi, Transpose::kNo, d_phi, Write::kAdd);
    tile_matmul(psi, Transpose::kYes, values, sums, Write::kAdd);
    head.pull_back(chunk, false, phi, d_phi, gradients);
  });
  for_each_chunk_backwards(n, [&](Chunk chunk) {
    const Matrix phi = head.phi(chunk), psi = head.psi(chunk), values = head.values(chunk), e = e_of(chunk);
    const Matrix d_psi = all_d_phi.row_block(0, chunk.count), dv = all_dv.row_block(0, chunk.count);
    const Matrix weights(all_weights.data, chunk.count, chunk.count);
    matmul(phi, Transpose::kNo, psi, Transpose::kYes, weights, Write::kOver);
    clear_later_keys(weights);
    matmul(head.inner(values), Transpose::kNo, head.inner(d_sums), Transpose::kYes, d_psi, Write::kOver);
    matmul(d_weights_of(e, values), Transpose::kYes, phi, Transpose::kNo, d_psi, Write::kAdd);
    tile_matmul(psi, Transpose::kNo, d_sums, dv, Write::kOver);
    tile_matmul(weights, Transpose::kYes, e, dv, Write::kAdd);
    write_dv(chunk, dv);
    tile_matmul(phi, Transpose::kYes, e, d_sums, Write::kAdd);
    head.pull_back(chunk, true, psi, d_psi, gradients);
  });
}

void FeatureMapKernel::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  const int64_t n = in.q.rows;
  if (n == 0) return;
  run_parts(in.fork, shape().heads, arena, [&](int64_t head, Arena& scratch) {
    float* memory = saved == nullptr ? nullptr : saved + head * Saved::floats(*this, n);
    head_forward(in, static_cast<int>(head), out, memory, scratch);
  });
}

void FeatureMapKernel::backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                                const AttentionGradients& gradients, Arena& arena) const {
  const int64_t n = in.q.rows;
  if (n == 0) return;
  run_parts(in.fork, shape().heads, arena, [&](int64_t head, Arena& scratch) {
    // Only read.
    float* memory = const_cast<float*>(saved) + head * Saved::floats(*this, n);
    head_backward(in, static_cast<int>(head), out, memory, gradients, scratch);
  });
}

void FeatureMapKernel::visit_weights(const AttentionInput& in, Arena& arena,
                                     const std::function<void(const WeightRow&)>& visit) const {
  const int64_t n = in.q.rows;
  for (int index = 0; index < shape().heads; ++index) {
    const Arena::Scope scope(arena);
    float* context = arena.floats(map_->context_floats());
    map_->prepare(in, index, context, arena);
    const Head head(*map_, in, index, shape().head_dim, context, arena);
    const Matrix rows = arena.matrix(kChunk, n);
    for_each_chunk(n, [&](Chunk queries) {
      const Matrix phi = head.phi(queries), weights = rows.row_block(0, queries.count);
      for_each_chunk(n, [&](Chunk keys) {
        matmul(phi, Transpose::kNo, head.psi(keys), Transpose::kYes, weights.col_block(keys.first, keys.count),
               Write::kOver);
      });
      for (int64_t i = 0; i < queries.count; ++i) {
        const int64_t query = queries.first + i;
        const std::span<float> row(weights.row(i), static_cast<size_t>(keys(query, n)));
        double z = 0.0;
        for (const float weight : row) z += weight;
        const float divisor = map_->denominator(static_cast<float>(z), keys(query, n)).value;
        for (float& weight : row) weight /= divisor;
        visit({index, query, {}, row, std::nullopt});
      }
    });
  }
}

double FeatureMapKernel::flops(int64_t tokens, bool training, float) const {
  const double n = static_cast<double>(tokens), features = static_cast<double>(map_->features());
  const double width = shape().head_dim + 1.0, chunk = static_cast<double>(std::min(kChunk, tokens));
  // A token's products with A, and those with the tokens of its chunk over the features and over the values.
  const double sum = 2.0 * features * width, over_features = 2.0 * chunk * features, over_values = 2.0 * chunk * width;
  const double forward =
      map_->prepare_flops() + 2.0 * map_->feature_flops() + 2.0 * sum + (causal_ ? over_features + over_values : 0.0);
  // Features again (causal: twice) and their way back; A again where rows are causal.
  const double backward = (causal_ ? 4.0 : 2.0) * map_->feature_flops() + 2.0 * map_->feature_flops() +
                          (causal_ ? 5.0 * sum + 3.0 * over_features + 3.0 * over_values : 4.0 * sum);
  return n * shape().heads * (forward + (training ? backward : 0.0));
}

}  // namespace

std::unique_ptr<AttentionKernel> make_feature_map(const AttentionSpec& spec, const AttentionShape& shape,
                                                  std::unique_ptr<FeatureMap> map) {
  return std::make_unique<FeatureMapKernel>(shape, spec, std::move(map));
}

FeatureMap::Denominator away_from_zero(float z, float floor) {
  if (std::abs(z) >= floor) return {z, 1.0f};
  return {z < 0.0f ? -floor : floor, 0.0f};
}

namespace ref {

std::vector<Row> kernelised_weights(const KernelisedAttention& attention, const AttentionProblem& problem, int head) {
  const std::vector<Row> phi = attention.features(problem, head, false), psi = attention.features(problem, head, true);
  std::vector<Row> weights;
  for (int64_t i = 0; i < problem.tokens(); ++i) {
    Row& row = weights.emplace_back(problem.keys(i));
    double z = 0.0;
    for (size_t j = 0; j < row.size(); ++j) {
      for (size_t f = 0; f < phi[i].size(); ++f) row[j] += phi[i][f] * psi[j][f];
      z += row[j];
    }
    const double divisor = attention.denominator(problem, z, problem.keys(i));
    for (double& weight : row) weight /= divisor;
  }
  return weights;
}

Reference kernelised(KernelisedAttention attention) {
  return matrices([attention = std::move(attention)](const AttentionProblem& problem, int head) {
    return kernelised_weights(attention, problem, head);
  });
}

double away_from_zero(double z, double floor) {
  if (std::abs(z) >= floor) return z;
  return z < 0.0 ? -floor : floor;
}

}  // namespace ref
}  // namespace lra
