#include <cmath>
#include <vector>

#include "lib/attention/score_maps.h"
#include "lib/device/dropout.h"
#include "lib/device/fused.h"
#include "lib/device/length_factor.h"
#include "lib/device/tiles.h"

namespace lra::device {
namespace {

// Tiles of scores: dropout decides by 128 columns.
constexpr int kKeys = 128, kForwardQueries = 64;
// Rows that backward has room for in the 163 KiB of an architecture 80.
LRA_BOTH constexpr int backward_queries(int width) { return width <= 48 ? 32 : 16; }
constexpr int kUnits = kKeys / 8;  // of dropout in a row of a tile, 8 columns each

// What is one block's: some queries, or keys, of one head of a sequence.
struct Piece {
  int32_t sequence, first;
};

// What the kernels have in common.
struct Shared {
  const int64_t* sequence_first;
  const uint32_t* example;
  const Piece* pieces;
  ConstMatrix q, k, v;  // (tokens, H*D)
  int64_t heads, d;
  int width;  // D in whole tiles of 16
  bool causal;
  float scale;
  DropoutMask mask;
};

struct Place {
  int64_t sequence, head, first_row, tokens;
  int64_t first;  // query or key of the piece
};
LRA_KERNEL Place place_of(const Shared& s, int64_t block) {
  const Piece piece = s.pieces[block / s.heads];
  const int64_t row = s.sequence_first[piece.sequence];
  return {piece.sequence, block % s.heads, row, s.sequence_first[piece.sequence + 1] - row, piece.first};
}

// Rows first … of a head of x (tokens, H*D) as bfloat16, 0 behind the sequence's end and the head's width.
LRA_KERNEL void load(const Team& team, const Shared& s, const Place& p, ConstMatrix x, int64_t first,
                     const Tile<Bf16>& to) {
  const int64_t d = s.d, head = p.head, row = p.first_row + first, left = p.tokens - first;
  team.for_each(to.rows * to.cols, [=](int64_t i) {
    const int64_t r = i / to.cols, c = i % to.cols;
    to.at(r, c) = to_bfloat16(r < left && c < d ? x.data[(row + r) * x.stride + head * d + c] : 0.0f);
  });
}
LRA_KERNEL void clear(const Team& team, const Tile<float>& x) {
  team.for_each(x.rows * x.cols, [=](int64_t i) { x.at(i / x.cols, i % x.cols) = 0.0f; });
}
// Rows first … of a head of y (tokens, H*D) = factor(row) * from.
template <class Factor>
LRA_KERNEL void store(const Team& team, const Shared& s, const Place& p, const Tile<float>& from, int64_t first,
                      Matrix y, const Factor& factor) {
  const int64_t d = s.d, head = p.head, row = p.first_row + first, left = p.tokens - first;
  team.for_each(from.rows * d, [=](int64_t i) {
    const int64_t r = i / d, c = i % d;
    if (r < left) y.data[(row + r) * y.stride + head * d + c] = factor(r) * from.at(r, c);
  });
}

// use(row, column, query, key, dropout factor) for every score of a tile that there is, others(row, column) for the
// rest.
template <class Use, class Others>
LRA_KERNEL void for_each_score(const Team& team, const Shared& s, const Place& p, int queries, int64_t first_query,
                               int64_t first_key, const Use& use, const Others& others) {
  DropoutMask mask = s.mask;
  mask.site += static_cast<uint32_t>(p.head);
  const uint32_t example = s.example[p.sequence];
  const bool causal = s.causal;
  const int64_t tokens = p.tokens;
  team.for_each(queries * kUnits, [=](int64_t i) {
    const int64_t row = i / kUnits, lane = i % kUnits, query = first_query + row;
    const int64_t keys = query >= tokens ? 0 : causal ? query + 1 : tokens;
    for (int64_t column = lane; column < kKeys; column += kUnits) {
      if (first_key + column >= keys) others(row, column);
    }
    mask.of_unit(example, query, first_key / 8 + lane, keys,
                 [=](int64_t key, float factor) { use(row, key - first_key, query, key, factor); });
  });
}

// Families: the map of a row's scores.
struct Softmax {
  static constexpr bool kNormalised = true;
};
struct Polynomial {
  static constexpr bool kNormalised = false;
  int power;
  LengthFactor factor;
  LRA_KERNEL PowerMap<float> at(int64_t keys) const { return {power, length_factor(factor, keys)}; }
};
struct Sigmoid {
  static constexpr bool kNormalised = false;
  bool length_bias;
  LengthFactor factor;
  LRA_KERNEL SigmoidMap<float> at(int64_t keys) const {
    return {length_factor(factor, keys), length_bias ? -std::log(static_cast<float>(keys)) : 0.0f};
  }
};
struct Relu {
  static constexpr bool kNormalised = false;
  bool square;
  LengthFactor factor;
  LRA_KERNEL ReluMap<float> at(int64_t keys) const { return {square, length_factor(factor, keys)}; }
};

// Of every token and head: softmax's largest score and 1 / sum, and dO·O. Null for the others.
struct RowNumbers {
  float *top = nullptr, *over_sum = nullptr, *along = nullptr;
};

int64_t forward_bytes(int width) {
  FastMemory memory;
  memory.tile<Bf16>(kForwardQueries, width), memory.tile<Bf16>(kKeys, width), memory.tile<Bf16>(kKeys, width);
  memory.tile<float>(kForwardQueries, kKeys), memory.tile<Bf16>(kForwardQueries, kKeys);
  memory.tile<float>(kForwardQueries, width), memory.take<float>(kForwardQueries * kUnits);
  for (int i = 0; i < 3; ++i) memory.take<float>(kForwardQueries);
  return memory.used;
}

template <class Map>
void run_forward(Device& device, int64_t blocks, const Shared& s, const Map& map, Matrix out, RowNumbers numbers) {
  launch_with_memory(device, blocks, forward_bytes(s.width), [=] LRA_KERNEL(Team & team, std::byte * base) {
    FastMemory memory(base);
    const auto q = memory.tile<Bf16>(kForwardQueries, s.width);
    const auto k = memory.tile<Bf16>(kKeys, s.width), v = memory.tile<Bf16>(kKeys, s.width);
    const auto scores = memory.tile<float>(kForwardQueries, kKeys);
    const auto weights = memory.tile<Bf16>(kForwardQueries, kKeys);
    const auto sums = memory.tile<float>(kForwardQueries, s.width);
    float* parts = memory.take<float>(kForwardQueries * kUnits);
    float *top = memory.take<float>(kForwardQueries), *sum = memory.take<float>(kForwardQueries);
    float* earlier = memory.take<float>(kForwardQueries);
    const Place p = place_of(s, team.block());
    const int64_t rows = p.tokens - p.first < kForwardQueries ? p.tokens - p.first : kForwardQueries;
    const int64_t keys = s.causal ? p.first + rows : p.tokens;
    const float scale = s.scale;
    // nvcc does not capture what is first named inside of an if constexpr.
    [[maybe_unused]] const Map own = map;
    [[maybe_unused]] const RowNumbers kept = numbers;
    const Matrix to = out;
    load(team, s, p, s.q, p.first, q);
    clear(team, sums);
    team.for_each(kForwardQueries, [=](int64_t r) { top[r] = -INFINITY, sum[r] = 0.0f; });
    for (int64_t key = 0; key < keys; key += kKeys) {
      load(team, s, p, s.k, key, k);
      load(team, s, p, s.v, key, v);
      clear(team, scores);
      multiply_add<Side::kAsIs, Side::kTransposed>(team, q, k, scores);
      const auto none = [=](int64_t r, int64_t c) { weights.at(r, c) = to_bfloat16(0.0f); };
      if constexpr (Map::kNormalised) {
        team.for_each(kForwardQueries * kUnits, [=](int64_t i) {
          const int64_t r = i / kUnits, query = p.first + r;
          const int64_t of_row = query >= p.tokens ? 0 : s.causal ? query + 1 : p.tokens;
          float most = -INFINITY;
          for (int64_t c = i % kUnits; c < kKeys && key + c < of_row; c += kUnits) {
            most = most < scale * scores.at(r, c) ? scale * scores.at(r, c) : most;
          }
          parts[i] = most;
        });
        team.for_each(kForwardQueries, [=](int64_t r) {
          float most = top[r];
          for (int i = 0; i < kUnits; ++i) most = most < parts[r * kUnits + i] ? parts[r * kUnits + i] : most;
          earlier[r] = top[r] == -INFINITY ? 0.0f : std::exp(top[r] - most);
          top[r] = most;
        });
        team.for_each(kForwardQueries * kUnits, [=](int64_t i) { parts[i] = 0.0f; });
        for_each_score(
            team, s, p, kForwardQueries, p.first, key,
            [=](int64_t r, int64_t c, int64_t, int64_t, float factor) {
              const float weight = std::exp(scale * scores.at(r, c) - top[r]);
              parts[r * kUnits + c % kUnits] += weight;
              weights.at(r, c) = to_bfloat16(factor * weight);
            },
            none);
        team.for_each(kForwardQueries, [=](int64_t r) {
          float total = sum[r] * earlier[r];
          for (int i = 0; i < kUnits; ++i) total += parts[r * kUnits + i];
          sum[r] = total;
        });
        team.for_each(kForwardQueries * s.width,
                      [=](int64_t i) { sums.at(i / s.width, i % s.width) *= earlier[i / s.width]; });
      } else {
        for_each_score(
            team, s, p, kForwardQueries, p.first, key,
            [=](int64_t r, int64_t c, int64_t query, int64_t, float factor) {
              const float weight = own.at(s.causal ? query + 1 : p.tokens)(scale * scores.at(r, c)).value;
              weights.at(r, c) = to_bfloat16(factor * weight);
            },
            none);
      }
      multiply_add<Side::kAsIs, Side::kAsIs>(team, weights, v, sums);
    }
    if constexpr (Map::kNormalised) {
      store(team, s, p, sums, p.first, to, [=](int64_t r) { return 1.0f / sum[r]; });
      if (kept.top == nullptr) return;
      team.for_each(rows, [=](int64_t r) {
        const int64_t at = (p.first_row + p.first + r) * s.heads + p.head;
        kept.top[at] = top[r], kept.over_sum[at] = 1.0f / sum[r];
      });
    } else {
      store(team, s, p, sums, p.first, to, [](int64_t) { return 1.0f; });
    }
  });
}

// Both backward kernels: scores and gradients of weights of a tile become weights after dropout, and gradients of
// scores.
template <class Map>
LRA_KERNEL void pull_back(const Team& team, const Shared& s, const Place& p, const Map& map, const RowNumbers& numbers,
                          int64_t first_query, int64_t first_key, const Tile<float>& scores, const Tile<float>& slopes,
                          const Tile<Bf16>& weights, const Tile<Bf16>& d_scores) {
  const float scale = s.scale;
  for_each_score(
      team, s, p, scores.rows, first_query, first_key,
      [=](int64_t r, int64_t c, int64_t query, int64_t, float factor) {
        const float x = scale * scores.at(r, c), g = factor * slopes.at(r, c);
        if constexpr (Map::kNormalised) {
          const int64_t at = (p.first_row + query) * s.heads + p.head;
          const float weight = std::exp(x - numbers.top[at]) * numbers.over_sum[at];
          weights.at(r, c) = to_bfloat16(factor * weight);
          d_scores.at(r, c) = to_bfloat16(weight * (g - numbers.along[at]));
        } else {
          const ScoreValue<float> value = map.at(s.causal ? query + 1 : p.tokens)(x);
          weights.at(r, c) = to_bfloat16(factor * value.value);
          d_scores.at(r, c) = to_bfloat16(value.slope * g);
        }
      },
      [=](int64_t r, int64_t c) { weights.at(r, c) = d_scores.at(r, c) = to_bfloat16(0.0f); });
}

// Tiles of the backward kernels.
struct BackwardTiles {
  Tile<Bf16> q, d_out, k, v;
  Tile<float> scores, slopes;
  Tile<Bf16> weights, d_scores;

  LRA_BOTH static BackwardTiles in(FastMemory& memory, int width) {
    const int queries = backward_queries(width);
    BackwardTiles t;
    t.q = memory.tile<Bf16>(queries, width), t.d_out = memory.tile<Bf16>(queries, width);
    t.k = memory.tile<Bf16>(kKeys, width), t.v = memory.tile<Bf16>(kKeys, width);
    t.scores = memory.tile<float>(queries, kKeys), t.slopes = memory.tile<float>(queries, kKeys);
    t.weights = memory.tile<Bf16>(queries, kKeys), t.d_scores = memory.tile<Bf16>(queries, kKeys);
    return t;
  }
  LRA_KERNEL void products(const Team& team) const {
    clear(team, scores);
    clear(team, slopes);
    multiply_add<Side::kAsIs, Side::kTransposed>(team, q, k, scores);
    multiply_add<Side::kAsIs, Side::kTransposed>(team, d_out, v, slopes);
  }
};

int64_t backward_bytes(int width, int rows, int results) {
  FastMemory memory;
  BackwardTiles::in(memory, width);
  for (int i = 0; i < results; ++i) memory.tile<float>(rows, width);
  return memory.used;
}

// dk and dv of a piece of keys, over all queries that have them.
template <class Map>
void run_keys_backward(Device& device, int64_t blocks, const Shared& s, const Map& map, ConstMatrix d_out,
                       RowNumbers numbers, Matrix dk, Matrix dv) {
  launch_with_memory(device, blocks, backward_bytes(s.width, kKeys, 2), [=] LRA_KERNEL(Team & team, std::byte * base) {
    FastMemory memory(base);
    const BackwardTiles t = BackwardTiles::in(memory, s.width);
    const auto of_k = memory.tile<float>(kKeys, s.width), of_v = memory.tile<float>(kKeys, s.width);
    const Place p = place_of(s, team.block());
    const float scale = s.scale;
    load(team, s, p, s.k, p.first, t.k);
    load(team, s, p, s.v, p.first, t.v);
    clear(team, of_k);
    clear(team, of_v);
    for (int64_t query = s.causal ? p.first : 0; query < p.tokens; query += t.q.rows) {
      load(team, s, p, s.q, query, t.q);
      load(team, s, p, d_out, query, t.d_out);
      t.products(team);
      pull_back(team, s, p, map, numbers, query, p.first, t.scores, t.slopes, t.weights, t.d_scores);
      multiply_add<Side::kTransposed, Side::kAsIs>(team, t.weights, t.d_out, of_v);
      multiply_add<Side::kTransposed, Side::kAsIs>(team, t.d_scores, t.q, of_k);
    }
    store(team, s, p, of_k, p.first, dk, [=](int64_t) { return scale; });
    store(team, s, p, of_v, p.first, dv, [](int64_t) { return 1.0f; });
  });
}

// dq of a piece of queries, over all keys that they have.
template <class Map>
void run_queries_backward(Device& device, int64_t blocks, const Shared& s, const Map& map, ConstMatrix d_out,
                          RowNumbers numbers, Matrix dq) {
  launch_with_memory(device, blocks, backward_bytes(s.width, backward_queries(s.width), 1),
                     [=] LRA_KERNEL(Team & team, std::byte * base) {
                       FastMemory memory(base);
                       const BackwardTiles t = BackwardTiles::in(memory, s.width);
                       const auto of_q = memory.tile<float>(backward_queries(s.width), s.width);
                       const Place p = place_of(s, team.block());
                       const int64_t behind = p.first + t.q.rows < p.tokens ? p.first + t.q.rows : p.tokens;
                       const int64_t keys = s.causal ? behind : p.tokens;
                       const float scale = s.scale;
                       load(team, s, p, s.q, p.first, t.q);
                       load(team, s, p, d_out, p.first, t.d_out);
                       clear(team, of_q);
                       for (int64_t key = 0; key < keys; key += kKeys) {
                         load(team, s, p, s.k, key, t.k);
                         load(team, s, p, s.v, key, t.v);
                         t.products(team);
                         pull_back(team, s, p, map, numbers, p.first, key, t.scores, t.slopes, t.weights, t.d_scores);
                         multiply_add<Side::kAsIs, Side::kAsIs>(team, t.d_scores, t.k, of_q);
                       }
                       store(team, s, p, of_q, p.first, dq, [=](int64_t) { return scale; });
                     });
}

// along (tokens, H) = a·b of each head.
void dot_heads(Context c, int64_t heads, ConstMatrix a, ConstMatrix b, float* along) {
  const int64_t d = a.cols / heads;
  launch(c.device, a.rows * heads, threads_for(d), [=] LRA_KERNEL(Team & team) {
    const int64_t row = team.block() / heads, at = team.block() % heads * d;
    const float *x = a.data + row * a.stride + at, *y = b.data + row * b.stride + at;
    const float sum = team.sum(d, [=](int64_t e) { return x[e] * y[e]; });
    team.for_each(1, [=](int64_t) { along[team.block()] = sum; });
  });
}
void copy_rows(Context c, ConstMatrix x, Matrix y) {
  launch_each(c.device, x.rows * x.cols, [=] LRA_KERNEL(int64_t i) {
    y.data[i / x.cols * y.stride + i % x.cols] = x.data[i / x.cols * x.stride + i % x.cols];
  });
}

template <class Map>
class Fused final : public Attention {
 public:
  Fused(const AttentionShape& shape, bool causal, Map map)
      : heads_(shape.heads), d_(shape.head_dim), causal_(causal), map_(map) {}

  // Outputs, and two numbers a row.
  int64_t saved_floats(int64_t tokens) const override { return Map::kNormalised ? tokens * heads_ * (d_ + 2) : 0; }

  void forward(Context c, const AttentionCall& call, Matrix out, float* saved) const override {
    const Scratch::Scope scope(c.scratch);
    const std::vector<Piece> pieces = pieces_of(call, kForwardQueries);
    run_forward(c.device, std::ssize(pieces) * heads_, shared(c, call, pieces), map_, out, numbers_of(call, saved));
    if (Map::kNormalised && saved != nullptr) copy_rows(c, out, output_of(call, saved));
  }

  void backward(Context c, const AttentionCall& call, const float* saved,
                const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    RowNumbers numbers;
    if (Map::kNormalised) {
      float* kept = const_cast<float*>(saved);  // only read
      numbers = numbers_of(call, kept);
      numbers.along = c.scratch.take<float>(call.q.rows * heads_);
      dot_heads(c, heads_, slopes.d_out, output_of(call, kept), numbers.along);
    }
    const std::vector<Piece> keys = pieces_of(call, kKeys), queries = pieces_of(call, backward_queries(width()));
    run_keys_backward(c.device, std::ssize(keys) * heads_, shared(c, call, keys), map_, slopes.d_out, numbers,
                      slopes.dk, slopes.dv);
    run_queries_backward(c.device, std::ssize(queries) * heads_, shared(c, call, queries), map_, slopes.d_out, numbers,
                         slopes.dq);
  }

 private:
  // Every sequence in pieces of that length.
  static std::vector<Piece> pieces_of(const AttentionCall& call, int64_t length) {
    std::vector<Piece> pieces;
    for (int64_t s = 0; s < call.batch.sequences; ++s) {
      for (int64_t at = 0; at < call.batch.length[static_cast<size_t>(s)]; at += length) {
        pieces.push_back({static_cast<int32_t>(s), static_cast<int32_t>(at)});
      }
    }
    return pieces;
  }
  Shared shared(Context c, const AttentionCall& call, const std::vector<Piece>& pieces) const {
    return {.sequence_first = call.batch.sequence_first,
            .example = call.batch.example,
            .pieces = c.scratch.upload(std::span<const Piece>(pieces)),
            .q = call.q,
            .k = call.k,
            .v = call.v,
            .heads = heads_,
            .d = d_,
            .width = width(),
            .causal = causal_,
            .scale = 1.0f / std::sqrt(static_cast<float>(d_)),
            .mask = {call.dropout_key, lra::dropout_site(DropoutSite::kAttention, call.layer), call.dropout}};
  }
  int width() const { return static_cast<int>((d_ + 15) / 16 * 16); }
  RowNumbers numbers_of(const AttentionCall& call, float* saved) const {
    if (!Map::kNormalised || saved == nullptr) return {};
    const int64_t rows = call.q.rows * heads_;
    return {.top = saved + rows * d_, .over_sum = saved + rows * (d_ + 1)};
  }
  Matrix output_of(const AttentionCall& call, float* saved) const { return {saved, call.q.rows, heads_ * d_}; }

  int64_t heads_, d_;
  bool causal_;
  Map map_;
};

template <class Map>
std::unique_ptr<Attention> make(const AttentionShape& shape, bool causal, Map map) {
  return std::make_unique<Fused<Map>>(shape, causal, map);
}

}  // namespace

std::unique_ptr<Attention> fused_softmax(const AttentionShape& shape, bool causal) {
  return make(shape, causal, Softmax{});
}
std::unique_ptr<Attention> fused_polynomial(const AttentionShape& shape, bool causal, int power, LengthFactor factor) {
  return make(shape, causal, Polynomial{power, factor});
}
std::unique_ptr<Attention> fused_sigmoid(const AttentionShape& shape, bool causal, SigmoidBias bias,
                                         LengthFactor factor) {
  return make(shape, causal, Sigmoid{bias == SigmoidBias::kLength, factor});
}
std::unique_ptr<Attention> fused_relu(const AttentionShape& shape, bool causal, bool square, LengthFactor factor) {
  return make(shape, causal, Relu{square, factor});
}

}  // namespace lra::device
