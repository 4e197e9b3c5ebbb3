// The driver of feature maps: products between the kernels of the map and those of feature_sums.h.
#include "lib/device/feature_map.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "lib/device/feature_sums.h"

namespace lra::device {
namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;
constexpr int64_t kChunk = 128;  // tokens of a causal sequence that meet each other by scores

// Some tokens of one sequence.
struct Piece {
  int64_t sequence;  // of the group
  int64_t first, count;
};

class FeatureAttention final : public Attention {
 public:
  FeatureAttention(const AttentionShape& shape, std::unique_ptr<FeatureMap> map, bool causal, int64_t floats)
      : heads_(shape.heads),
        d_(shape.head_dim),
        width_((d_ + 1 + 3) / 4 * 4),
        features_(map->features()),
        map_(std::move(map)),
        causal_(causal),
        floats_(floats) {}

  bool linear() const override { return true; }
  int64_t saved_floats(int64_t) const override { return 0; }

  void forward(Context c, const AttentionCall& call, Matrix out, float*) const override {
    for_each_group(c, call, [&](const SequenceGroup& group) {
      const Work work = add_up(c, call, group);
      divide_values(c, heads_, divisor(call, group), work.y, rows(out, group));
    });
  }

  void backward(Context c, const AttentionCall& call, const float*, const AttentionSlopes& slopes) const override {
    for_each_group(c, call, [&](const SequenceGroup& group) {
      const Work work = add_up(c, call, group);
      Slopes d = {c.scratch.matrix(group.tokens, heads_ * features_),
                  c.scratch.matrix(group.tokens, heads_ * features_), c.scratch.matrix(group.tokens, heads_ * width_),
                  c.scratch.matrix(group.tokens, heads_ * width_), sums_of(c, group)};
      divide_values_backward(c, heads_, divisor(call, group), work.y, rows(slopes.d_out, group), d.e);
      if (causal_) {
        causal_backward(c, call, group, work, d);
      } else {
        std::vector<Product> to_phi, to_psi;
        for (const Piece& p : whole_sequences(call, group)) {
          to_phi.push_back(read(p, d.e, kYes, work.sums, d.phi));
          to_phi.push_back(sum(p, work.phi, d.e, d.sums, 0.0f));
          to_psi.push_back(read(p, work.values, kYes, d.sums, d.psi));
          to_psi.push_back(read(p, work.psi, kNo, d.sums, d.values));
        }
        c.device.multiply(to_phi);
        c.device.multiply(to_psi);
      }
      take_values(c, heads_, d.values, rows(slopes.dv, group));
      map_->backward(c, work.queries(call, group), work.phi, d.phi, rows(slopes.dq, group), slopes.d_parameters);
      map_->backward(c, work.keys(call, group), work.psi, d.psi, rows(slopes.dk, group), slopes.d_parameters);
    });
  }

 private:
  template <class View>
  static View rows(View x, const SequenceGroup& group) {
    return x.row_block(group.first, group.tokens);
  }

  // Of a group: features (tokens, H*F), [v, 1] and the sums over keys (tokens, H*W), A (sequences, H, F, W).
  struct Work {
    Matrix phi, psi, values, y;
    float *sums, *context;

    FeatureRows queries(const AttentionCall& call, const SequenceGroup& group) const {
      return {call, group, false, rows(call.q, group), context};
    }
    FeatureRows keys(const AttentionCall& call, const SequenceGroup& group) const {
      return {call, group, true, rows(call.k, group), context};
    }
  };
  struct Slopes {
    Matrix phi, psi, values, e;
    float* sums;
  };

  template <class Use>
  void for_each_group(Context c, const AttentionCall& call, const Use& use) const {
    const RaggedBatch& batch = call.batch;
    const int64_t token_floats = heads_ * features_;
    for (int64_t begin = 0; begin < batch.sequences;) {
      int64_t end = begin + 1;
      while (end < batch.sequences && (batch.first[end + 1] - batch.first[begin]) * token_floats <= floats_) ++end;
      const SequenceGroup group = {begin, end - begin, batch.first[begin], batch.first[end] - batch.first[begin]};
      const Scratch::Scope scope(c.scratch);
      if (group.tokens > 0) use(group);
      begin = end;
    }
  }

  Divisor divisor(const AttentionCall& call, const SequenceGroup& group) const {
    return {map_->denominator(), call.batch.sequence + group.first, call.batch.sequence_first, group.first, causal_};
  }

  float* sums_of(Context c, const SequenceGroup& group) const {
    return c.scratch.take<float>(group.count * heads_ * features_ * width_);
  }
  void clear_sums(Context c, const SequenceGroup& group, float* sums) const {
    c.device.fill_zero({sums, group.count * heads_ * features_, width_});
  }

  std::vector<Piece> whole_sequences(const AttentionCall& call, const SequenceGroup& group) const {
    std::vector<Piece> pieces;
    for (int64_t s = 0; s < group.count; ++s) {
      const int64_t n = call.batch.length[group.begin + s];
      if (n > 0) pieces.push_back({s, call.batch.first[group.begin + s] - group.first, n});
    }
    return pieces;
  }
  // Chunk `number` of every sequence that has one.
  std::vector<Piece> chunks(const AttentionCall& call, const SequenceGroup& group, int64_t number) const {
    std::vector<Piece> pieces;
    for (const Piece& p : whole_sequences(call, group)) {
      const int64_t at = number * kChunk;
      if (at < p.count) pieces.push_back({p.sequence, p.first + at, std::min(kChunk, p.count - at)});
    }
    return pieces;
  }
  int64_t most_chunks(const AttentionCall& call, const SequenceGroup& group) const {
    int64_t longest = 0;
    for (const Piece& p : whole_sequences(call, group)) longest = std::max(longest, p.count);
    return (longest + kChunk - 1) / kChunk;
  }

  // The block of head 0 in a piece's rows; those of the others are as wide further on.
  ConstMatrix of_piece(const Piece& p, ConstMatrix x) const {
    return x.row_block(p.first, p.count).col_block(0, x.cols / heads_);
  }
  Matrix of_piece(const Piece& p, Matrix x) const {
    return x.row_block(p.first, p.count).col_block(0, x.cols / heads_);
  }
  Matrix of_sums(const Piece& p, float* sums) const {
    return {sums + p.sequence * heads_ * features_ * width_, features_, width_};
  }
  // A (F, W) = featuresᵀ values + beta A.
  Product sum(const Piece& p, ConstMatrix features, ConstMatrix values, float* sums, float beta) const {
    Product product_of = product(of_piece(p, features), kYes, of_piece(p, values), kNo, of_sums(p, sums), 1.0f, beta);
    product_of.count = heads_;
    product_of.a_next = features_, product_of.b_next = width_, product_of.c_next = features_ * width_;
    return product_of;
  }
  // to = from op(A).
  Product read(const Piece& p, ConstMatrix from, Transpose transpose, float* sums, Matrix to) const {
    return by_head(heads_, of_piece(p, from), from.cols / heads_, of_sums(p, sums), transpose, features_ * width_,
                   of_piece(p, to), to.cols / heads_);
  }
  // Scores of a chunk's tokens with each other: number `index` of matrices (kChunk, kChunk) a head.
  Matrix weights_of(int64_t index, const Piece& p, float* weights) const {
    return {weights + index * heads_ * kChunk * kChunk, p.count, p.count, kChunk};
  }
  Product meet(int64_t index, const Piece& p, ConstMatrix a, ConstMatrix b, float* weights) const {
    Product product_of = product(of_piece(p, a), kNo, of_piece(p, b), kYes, weights_of(index, p, weights));
    product_of.count = heads_;
    product_of.a_next = a.cols / heads_, product_of.b_next = b.cols / heads_, product_of.c_next = kChunk * kChunk;
    return product_of;
  }
  // to += op(weights) from.
  Product apply(int64_t index, const Piece& p, float* weights, Transpose transpose, ConstMatrix from, Matrix to) const {
    Product product_of =
        product(weights_of(index, p, weights), transpose, of_piece(p, from), kNo, of_piece(p, to), 1.0f, 1.0f);
    product_of.count = heads_;
    product_of.a_next = kChunk * kChunk, product_of.b_next = from.cols / heads_, product_of.c_next = to.cols / heads_;
    return product_of;
  }

  // A chunk of every sequence that has one: products with the sums and of tokens with each other, then what these
  // weights (of which later keys have none) are read with, then the sums for the next chunk. add(index, piece,
  // products).
  struct ChunkProducts {
    std::vector<Product> first, inside, onwards;
  };
  template <class Add>
  void run_chunk(Context c, const AttentionCall& call, const SequenceGroup& group, int64_t number,
                 std::initializer_list<float*> weights, const Add& add) const {
    const std::vector<Piece> pieces = chunks(call, group, number);
    ChunkProducts products;
    for (int64_t i = 0; i < std::ssize(pieces); ++i) add(i, pieces[static_cast<size_t>(i)], products);
    c.device.multiply(products.first);
    for (float* x : weights) clear_later_keys(c, std::ssize(pieces) * heads_, kChunk, x);
    c.device.multiply(products.inside);
    c.device.multiply(products.onwards);
  }

  // Features, values, their sums, and y: numerators and z of each query.
  Work add_up(Context c, const AttentionCall& call, const SequenceGroup& group) const {
    Scratch& scratch = c.scratch;
    Work work = {scratch.matrix(group.tokens, heads_ * features_),
                 scratch.matrix(group.tokens, heads_ * features_),
                 scratch.matrix(group.tokens, heads_ * width_),
                 scratch.matrix(group.tokens, heads_ * width_),
                 sums_of(c, group),
                 scratch.take<float>(group.count * heads_ * map_->context_width())};
    map_->prepare(c, call, group, work.context);
    map_->forward(c, work.queries(call, group), work.phi);
    map_->forward(c, work.keys(call, group), work.psi);
    values_with_ones(c, heads_, rows(call.v, group), work.values);
    if (!causal_) {
      std::vector<Product> sums, outputs;
      for (const Piece& p : whole_sequences(call, group)) {
        sums.push_back(sum(p, work.psi, work.values, work.sums, 0.0f));
        outputs.push_back(read(p, work.phi, kNo, work.sums, work.y));
      }
      c.device.multiply(sums);
      c.device.multiply(outputs);
      return work;
    }
    const Scratch::Scope scope(scratch);
    float* weights = scratch.take<float>(group.count * heads_ * kChunk * kChunk);
    clear_sums(c, group, work.sums);
    for (int64_t number = 0; number < most_chunks(call, group); ++number) {
      run_chunk(c, call, group, number, {weights}, [&](int64_t i, const Piece& p, ChunkProducts& products) {
        products.first.push_back(meet(i, p, work.phi, work.psi, weights));
        products.first.push_back(read(p, work.phi, kNo, work.sums, work.y));
        products.inside.push_back(apply(i, p, weights, kNo, work.values, work.y));
        products.onwards.push_back(sum(p, work.psi, work.values, work.sums, 1.0f));
      });
    }
    return work;
  }

  // A of the chunks before is summed again on the way to the end, dA of those behind on the way back.
  void causal_backward(Context c, const AttentionCall& call, const SequenceGroup& group, const Work& work,
                       const Slopes& d) const {
    const Scratch::Scope scope(c.scratch);
    float* weights = c.scratch.take<float>(group.count * heads_ * kChunk * kChunk);
    float* d_weights = c.scratch.take<float>(group.count * heads_ * kChunk * kChunk);
    const int64_t most = most_chunks(call, group);
    clear_sums(c, group, work.sums);
    for (int64_t number = 0; number < most; ++number) {
      run_chunk(c, call, group, number, {d_weights}, [&](int64_t i, const Piece& p, ChunkProducts& products) {
        products.first.push_back(meet(i, p, d.e, work.values, d_weights));
        products.first.push_back(read(p, d.e, kYes, work.sums, d.phi));
        products.inside.push_back(apply(i, p, d_weights, kNo, work.psi, d.phi));
        products.onwards.push_back(sum(p, work.psi, work.values, work.sums, 1.0f));
      });
    }
    clear_sums(c, group, d.sums);
    for (int64_t number = most - 1; number >= 0; --number) {
      run_chunk(c, call, group, number, {weights, d_weights}, [&](int64_t i, const Piece& p, ChunkProducts& products) {
        products.first.push_back(meet(i, p, work.phi, work.psi, weights));
        products.first.push_back(meet(i, p, d.e, work.values, d_weights));
        products.first.push_back(read(p, work.values, kYes, d.sums, d.psi));
        products.first.push_back(read(p, work.psi, kNo, d.sums, d.values));
        products.inside.push_back(apply(i, p, d_weights, kYes, work.phi, d.psi));
        products.inside.push_back(apply(i, p, weights, kYes, d.e, d.values));
        products.onwards.push_back(sum(p, work.phi, d.e, d.sums, 1.0f));
      });
    }
  }

  int64_t heads_, d_, width_, features_;
  std::unique_ptr<FeatureMap> map_;
  bool causal_;
  int64_t floats_;
};

}  // namespace

std::unique_ptr<Attention> make_feature_map(const AttentionShape& shape, std::unique_ptr<FeatureMap> map, bool causal,
                                            int64_t floats) {
  return std::make_unique<FeatureAttention>(shape, std::move(map), causal, floats);
}

Product by_head(int64_t heads, ConstMatrix a, int64_t a_width, ConstMatrix b, Transpose tb, int64_t b_next, Matrix c,
                int64_t c_width, float alpha, float beta) {
  Product p = product(a.col_block(0, a_width), Transpose::kNo, b, tb, c.col_block(0, c_width), alpha, beta);
  p.count = heads, p.a_next = a_width, p.b_next = b_next, p.c_next = c_width;
  return p;
}

}  // namespace lra::device
