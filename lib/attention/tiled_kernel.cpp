#include "lib/attention/tiled_kernel.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>

#include "lib/attention/tile_products.h"
#include "lib/ops/dropout.h"
#include "lib/util/phases.h"

namespace lra {
namespace {

// Masks of longer sequences are drawn again in the backward pass, so that memory stays linear in the length.
constexpr int64_t kLongestSavedMask = 8192;

constexpr int64_t kMaskSlack = 4;  // floats: a vector of mask bits is loaded as 8 bytes

int64_t mask_bytes(int64_t keys) { return (keys + 127) / 128 * 16; }

bool mask_is_saved(int64_t tokens, float dropout) { return dropout > 0.0f && tokens <= kLongestSavedMask; }

// The part of `saved` that belongs to a head: row statistics (N, width), then the rows of its mask. The backward pass
// only reads it.
struct SavedHead {
  float* statistics = nullptr;
  uint8_t* mask = nullptr;

  static int64_t floats(int64_t n, int width, float dropout) {
    return n * width + (mask_is_saved(n, dropout) ? n * mask_bytes(n) / 4 + kMaskSlack : 0);
  }
  SavedHead(float* saved, int head, int64_t n, int width, float dropout) {
    if (saved == nullptr) return;
    statistics = saved + head * floats(n, width, dropout);
    if (mask_is_saved(n, dropout)) mask = reinterpret_cast<uint8_t*>(statistics + n * width);
  }
};

// The dropout mask of a block of queries and a tile of keys.
class TileMask {
 public:
  // saved: the rows of the whole head, or null; then there is memory for queries x keys here.
  TileMask(const AttentionInput& in, int head, uint8_t* saved, int64_t queries, int64_t keys, Arena& arena)
      : rate_(in.dropout), saved_(saved), stride_(mask_bytes(saved != nullptr ? in.q.rows : keys)) {
    if (rate_ <= 0.0f) return;
    key_ = {in.dropout_key, dropout_site(DropoutSite::kAttention, in.layer, head), in.example};
    if (saved_ == nullptr) own_ = reinterpret_cast<uint8_t*>(arena.floats(queries * stride_ / 4 + kMaskSlack));
  }
  // Forward, before the first tile of a block: draws the rows that the backward pass will find, all at once.
  void save(int64_t query, int64_t queries, int64_t keys) {
    if (rate_ <= 0.0f || saved_ == nullptr) return;
    const PhaseScope phase(Phase::kMasks);
    dropout_mask(key_, rate_, query, 0, queries, keys, saved_ + query * stride_, stride_);
  }
  // Finds the mask of a tile where it was saved, or draws it.
  void take(int64_t query, int64_t queries, int64_t key, int64_t keys) {
    if (rate_ <= 0.0f) return;
    bits_ = saved_ != nullptr ? saved_ + query * stride_ + key / 8 : own_;
    if (saved_ != nullptr) return;
    const PhaseScope phase(Phase::kMasks);
    dropout_mask(key_, rate_, query, key, queries, keys, bits_, stride_);
  }
  // Fetches rows of the tile ahead of their use: those of a long sequence lie in memory, each a stride from the one
  // before, where no processor looks by itself.
  void prefetch(int64_t row, int64_t rows, int64_t keys) const {
    if (bits_ == nullptr) return;
    for (int64_t i = row; i < row + rows; ++i) {
      for (int64_t byte = 0; byte < mask_bytes(keys); byte += 64) hwy::Prefetch(bits_ + i * stride_ + byte);
    }
  }
  // Of query number `row` of the block, or null.
  const uint8_t* row(int64_t row) const { return bits_ == nullptr ? nullptr : bits_ + row * stride_; }
  int64_t stride() const { return stride_; }

 private:
  float rate_;
  uint8_t* saved_;
  int64_t stride_;
  DropoutKey key_;
  uint8_t *own_ = nullptr, *bits_ = nullptr;
};

float mask_scale(const AttentionInput& in) { return in.dropout > 0.0f ? dropout_scale(in.dropout) : 1.0f; }

// What both passes need of a head.
struct Head {
  int index;
  int64_t n, d;  // tokens, head width
  float score_scale;
  bool causal;
  const float* context;
  ConstMatrix q, k, v;
  const AttentionInput& in;

  Head(const AttentionInput& input, const AttentionShape& shape, int head, const ScoreActivation& activation,
       bool causal_rows, const float* prepared)
      : index(head),
        n(input.q.rows),
        d(shape.head_dim),
        score_scale(static_cast<float>(activation.score_scale(d))),
        causal(causal_rows),
        context(prepared),
        q(input.q.col_block(head * d, d)),
        k(input.k.col_block(head * d, d)),
        v(input.v.col_block(head * d, d)),
        in(input) {}

  // Scores of the queries from `query` on, which are those of the mask from row number `at` on.
  ScoreTile tile(Matrix s, int64_t query, int64_t key, const TileMask* mask, int64_t at) const {
    return {n,
            query,
            key,
            index,
            causal,
            in.training,
            in.parameters,
            context,
            s,
            mask == nullptr ? nullptr : mask->row(at),
            mask == nullptr ? 0 : mask->stride()};
  }
  // Whether none of the queries before `end` has a key from `key` on.
  bool skips(int64_t end, int64_t key) const { return causal && key >= end; }
};

void clear(Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.cols, 0.0f);
}

// The entries behind the row's keys are 0 in products.
void clear_behind(const ScoreTile& tile, Matrix x) {
  if (!tile.causal) return;
  for (int64_t i = 0; i < x.rows; ++i) std::fill(x.row(i) + tile.columns(i), x.row(i) + x.cols, 0.0f);
}

double sum_of_squares(const ScoreTile& tile, ConstMatrix x) {
  double sum = 0.0;
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < tile.columns(i); ++j) sum += static_cast<double>(x.row(i)[j]) * x.row(i)[j];
  }
  return sum;
}

// Gradients of the kernel's parameters and of a head's context, from parts that may be computed side by side, summed
// in the order of the parts.
class GradientSums {
 public:
  GradientSums(std::span<const KernelParameter> parameters, int64_t context, int64_t parts, Arena& arena)
      : tensors_(parameters.size()) {
    for (const KernelParameter& parameter : parameters) sizes_.push_back(parameter.size());
    sizes_.push_back(context);
    for (int64_t i = 0; i < parts; ++i) {
      for (const int64_t size : sizes_) {
        pointers_.push_back(arena.floats(size));
        std::fill_n(pointers_.back(), size, 0.0f);
      }
    }
  }
  RowGradients part(int64_t i) const {
    const auto pointers = std::span<float* const>(pointers_).subspan(static_cast<size_t>(i) * sizes_.size());
    return {pointers.first(tensors_), pointers[tensors_]};
  }
  // Tensors whose total is null, and a context that is null, are left out.
  void add_to(const RowGradients& totals) const {
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const size_t which = i % sizes_.size();
      float* total = which < tensors_ ? totals.parameters[which] : totals.context;
      if (total == nullptr) continue;
      for (int64_t j = 0; j < sizes_[which]; ++j) total[j] += pointers_[i][j];
    }
  }

 private:
  size_t tensors_;
  std::vector<int64_t> sizes_;
  std::vector<float*> pointers_;
};

// Calls body(first, count) for pieces of at most `step` of 0 … n - 1.
template <class Body>
void for_each_piece(int64_t n, int64_t step, const Body& body) {
  for (int64_t first = 0; first < n; first += step) body(first, std::min(step, n - first));
}

}  // namespace

TiledKernel::TiledKernel(AttentionShape shape, AttentionSpec spec, std::vector<KernelParameter> parameters,
                         std::unique_ptr<ScoreActivation> activation, bool causal)
    : AttentionKernel(shape, std::move(spec)),
      parameters_(std::move(parameters)),
      activation_(std::move(activation)),
      causal_(causal) {}

double ScoreActivation::score_scale(int64_t head_dim) const { return 1.0 / std::sqrt(static_cast<double>(head_dim)); }

std::unique_ptr<AttentionKernel> make_tiled(const AttentionSpec& spec, const AttentionShape& shape,
                                            std::unique_ptr<ScoreActivation> activation,
                                            std::vector<KernelParameter> parameters) {
  return std::make_unique<TiledKernel>(shape, spec, std::move(parameters), std::move(activation), spec.flag("causal"));
}

TiledKernel::Sizes TiledKernel::sizes(int64_t tokens) const {
  // Measured on a Zen 4 core with 1 MiB of second-level cache, 24 to 192 queries by 256 to 1024 keys: within 3 % of the
  // best at 348, 1024 and 4096 tokens. Tiles of scores and of their gradients take 192 KiB together.
  constexpr int64_t kQueries = 48, kKeys = 512, kEntries = kQueries * kKeys * 4;
  static_assert(kQueries % kTileRows == 0 && kQueries % kMostTileRows == 0 && kKeys % 128 == 0);
  if (!activation_->whole_rows()) return {kQueries, kKeys};
  const int64_t keys = std::max<int64_t>(tokens, 1);
  return {std::clamp(kEntries / keys / kTileRows * kTileRows, kTileRows, kQueries), keys};
}

int64_t TiledKernel::saved_floats(int64_t tokens, float dropout) const {
  return shape().heads * SavedHead::floats(tokens, activation_->statistics(), dropout);
}

const float* TiledKernel::prepare(const AttentionInput& in, int index, Arena& arena) const {
  const int64_t size = activation_->context_floats(in.q.rows);
  if (size == 0) return nullptr;
  float* context = arena.floats(size);
  activation_->prepare(in, index, context);
  return context;
}

template <class Products>
void TiledKernel::head_forward(const AttentionInput& in, int index, Matrix out, float* saved, Arena& arena) const {
  const Head head(in, shape(), index, *activation_, causal_, prepare(in, index, arena));
  const int64_t n = head.n, d = head.d;
  const Sizes size = sizes(n);
  const int64_t widest = std::min(size.keys, n);
  const int width = activation_->statistics();
  const SavedHead kept(saved, index, n, width, in.dropout);
  const auto k = Products::columns(head.k, arena);
  const auto v = Products::rows(head.v, arena);

  const auto block = [&](int64_t number, Arena& scratch) {
    const int64_t first = number * size.queries, count = std::min(size.queries, n - first);
    const Matrix scaled = scratch.matrix(count, d), sums = scratch.matrix(count, Products::width(d));
    scale_rows(head.score_scale, nullptr, 0, head.q.row_block(first, count), scaled);
    const auto q = Products::left(scaled, scratch);
    float* statistics = kept.statistics != nullptr ? kept.statistics + first * width : scratch.floats(count * width);
    typename Products::Tile tile(Products::tile_rows(), widest, scratch);
    TileMask mask(in, index, kept.mask, count, widest, scratch);
    const ScoreTile rows_only = head.tile(Matrix(nullptr, count, 0), first, 0, nullptr, 0);
    activation_->forward_begin(rows_only, statistics);
    mask.save(first, count, n);
    for_each_piece(n, size.keys, [&](int64_t key, int64_t keys) {
      if (head.skips(first + count, key)) return;
      mask.take(first, count, key, keys);
      const auto values = Products::row_block(v, key, keys);
      for_each_piece(count, Products::tile_rows(), [&](int64_t at, int64_t rows) {
        if (head.skips(first + at + rows, key)) return;
        const Matrix s = tile.panel(0, rows, keys), sum = sums.row_block(at, rows);
        Products::scores(q.row_block(at, rows), k, key, keys, s);
        float earlier[kMostTileRows];
        std::fill_n(earlier, rows, 1.0f);
        {
          const PhaseScope phase(Phase::kWeights);
          const ScoreTile scores = head.tile(s, first + at, key, &mask, at);
          activation_->forward(scores, statistics + at * width, earlier);
          clear_behind(scores, s);
        }
        if (key > 0 && std::any_of(earlier, earlier + rows, [](float x) { return x != 1.0f; })) {
          scale_rows(1.0f, earlier, 1, sum, sum);
        }
        tile.multiply(s, values, sum, key == 0 ? Write::kOver : Write::kAdd);
      });
    });
    activation_->forward_end(rows_only, statistics);
    scale_rows(mask_scale(in), statistics, width, sums.col_block(0, d),
               out.row_block(first, count).col_block(index * d, d));
  };
  run_parts(in.fork, (n + size.queries - 1) / size.queries, arena, block);
}

// Every block of queries meets every tile of keys once. Gradients of keys and values are summed over the blocks in
// their order, those of queries over the tiles in theirs. The tiles are the outer loop: what is summed a tile stays in
// the caches, and tiles that are computed side by side share nothing but dq.
template <class Products>
void TiledKernel::head_backward(const AttentionInput& in, int index, ConstMatrix out, const float* saved,
                                const AttentionGradients& gradients, const RowGradients& sums, Arena& arena) const {
  const Head head(in, shape(), index, *activation_, causal_, prepare(in, index, arena));
  const int64_t n = head.n, d = head.d, padded = Products::width(d);
  const Sizes size = sizes(n);
  const int64_t widest = std::min(size.keys, n);
  const int width = activation_->statistics();
  const SavedHead kept(const_cast<float*>(saved), index, n, width, in.dropout);
  const auto k_columns = Products::columns(head.k, arena);
  const auto v_columns = Products::columns(head.v, arena);
  const auto k_rows = Products::rows(head.k, arena);
  const ConstMatrix d_out = gradients.d_out.col_block(index * d, d);
  const Matrix scaled = arena.matrix(n, d);    // queries
  const Matrix d_scaled = arena.matrix(n, d);  // factor * dropout scale * dO
  float* row_dots = arena.floats(n);
  scale_rows(head.score_scale, nullptr, 0, head.q, scaled);
  scale_rows(mask_scale(in), kept.statistics, width, d_out, d_scaled);
  dot_rows(d_out, out.col_block(index * d, d), row_dots);
  const auto q = Products::left(scaled, arena), d_left = Products::left(d_scaled, arena);
  const auto q_rows = Products::rows(scaled, arena), d_rows = Products::rows(d_scaled, arena);

  const int64_t tiles = (n + size.keys - 1) / size.keys;
  const GradientSums d_tiles(parameters_, activation_->context_floats(n), tiles, arena);
  struct Scratch {
    typename Products::Tile s, g;
    TileMask mask;
  };
  const auto scratch_in = [&](Arena& memory) {
    return Scratch{{size.queries, widest, memory},
                   {size.queries, widest, memory},
                   {in, index, kept.mask, size.queries, widest, memory}};
  };
  // A block of queries with a tile of keys: dq (count, W), dk and dv (keys, W).
  const auto meet = [&](int64_t first, int64_t count, int64_t key, Matrix dq, Write dq_write, Matrix dk, Matrix dv,
                        Scratch& scratch) {
    const int64_t keys = dk.rows;
    if (head.skips(first + count, key)) {
      if (dq_write == Write::kOver) clear(dq);
      if (first == 0) clear(dk), clear(dv);
      return;
    }
    const auto k_tile = Products::row_block(k_rows, key, keys);
    scratch.mask.take(first, count, key, keys);
    for_each_piece(count, Products::tile_rows(), [&](int64_t at, int64_t rows) {
      const int64_t query = first + at;
      const Matrix s = scratch.s.panel(at, rows, keys), g = scratch.g.panel(at, rows, keys);
      scratch.mask.prefetch(at, rows, keys);
      Products::scores(q.row_block(query, rows), k_columns, key, keys, s);  // the same bits as in the forward pass
      Products::scores(d_left.row_block(query, rows), v_columns, key, keys, g);
      {
        const PhaseScope phase(Phase::kWeights);
        const ScoreTile scores = head.tile(s, query, key, &scratch.mask, at);
        activation_->backward(scores, kept.statistics + query * width, row_dots + query, g,
                              d_tiles.part(key / size.keys));
        clear_behind(scores, s), clear_behind(scores, g);
        if (gradients.score_gradient_squares != nullptr) {
          gradients.score_gradient_squares[index] += sum_of_squares(scores, g);
        }
      }
      scratch.g.multiply(g, k_tile, dq.row_block(at, rows), dq_write);
      scratch.s.finish(s, at);
      scratch.g.finish(g, at);
    });
    const Write write = first == 0 ? Write::kOver : Write::kAdd;
    scratch.s.multiply_transposed(count, keys, Products::row_block(d_rows, first, count), dv, write);
    scratch.g.multiply_transposed(count, keys, Products::row_block(q_rows, first, count), dk, write);
  };

  const Matrix dq = arena.matrix(n, padded), dk = arena.matrix(n, padded), dv = arena.matrix(n, padded);
  if (in.fork == nullptr) {
    Scratch scratch = scratch_in(arena);
    for_each_piece(n, size.keys, [&](int64_t key, int64_t keys) {
      for_each_piece(n, size.queries, [&](int64_t first, int64_t count) {
        meet(first, count, key, dq.row_block(first, count), key == 0 ? Write::kOver : Write::kAdd,
             dk.row_block(key, keys), dv.row_block(key, keys), scratch);
      });
    });
  } else {
    // Some tiles side by side, each with a dq of its own.
    constexpr int64_t kGroup = 16;
    const Matrix parts = arena.matrix(std::min(kGroup, tiles) * n, padded);
    for_each_piece(tiles, kGroup, [&](int64_t first_tile, int64_t tile_count) {
      in.fork->run(tile_count, [&](int64_t i, Arena& memory) {
        Scratch scratch = scratch_in(memory);
        const int64_t key = (first_tile + i) * size.keys, keys = std::min(size.keys, n - key);
        for_each_piece(n, size.queries, [&](int64_t first, int64_t count) {
          meet(first, count, key, parts.row_block(i * n + first, count), Write::kOver, dk.row_block(key, keys),
               dv.row_block(key, keys), scratch);
        });
      });
      for (int64_t i = 0; i < tile_count; ++i) {
        add_rows(parts.row_block(i * n, n), dq, first_tile + i == 0 ? Write::kOver : Write::kAdd);
      }
    });
  }
  d_tiles.add_to(sums);
  scale_rows(head.score_scale, nullptr, 0, dq.col_block(0, d), gradients.dq.col_block(index * d, d));
  scale_rows(1.0f, nullptr, 0, dk.col_block(0, d), gradients.dk.col_block(index * d, d));
  scale_rows(1.0f, nullptr, 0, dv.col_block(0, d), gradients.dv.col_block(index * d, d));
}

void TiledKernel::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  run_parts(in.fork, shape().heads, arena, [&](int64_t head, Arena& scratch) {
    if (in.precision == Precision::kBfloat16) {
      head_forward<Bfloat16Products>(in, static_cast<int>(head), out, saved, scratch);
    } else {
      head_forward<Float32Products>(in, static_cast<int>(head), out, saved, scratch);
    }
  });
}

void TiledKernel::backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                           const AttentionGradients& gradients, Arena& arena) const {
  const Arena::Scope scope(arena);
  const int heads = shape().heads;
  const GradientSums d_heads(parameters_, activation_->context_floats(in.q.rows), heads, arena);
  run_parts(in.fork, heads, arena, [&](int64_t head, Arena& scratch) {
    if (in.precision == Precision::kBfloat16) {
      head_backward<Bfloat16Products>(in, static_cast<int>(head), out, saved, gradients, d_heads.part(head), scratch);
    } else {
      head_backward<Float32Products>(in, static_cast<int>(head), out, saved, gradients, d_heads.part(head), scratch);
    }
  });
  d_heads.add_to({gradients.d_parameters, nullptr});
  if (activation_->context_floats(in.q.rows) == 0) return;
  for (int head = 0; head < heads; ++head) {
    const float* context = prepare(in, head, arena);
    activation_->prepare_backward(in, head, context, d_heads.part(head).context, gradients);
  }
}

void TiledKernel::visit_weights(const AttentionInput& in, Arena& arena,
                                const std::function<void(const WeightRow&)>& visit) const {
  using Products = Float32Products;
  for (int index = 0; index < shape().heads; ++index) {
    const Arena::Scope scope(arena);
    const Head head(in, shape(), index, *activation_, causal_, prepare(in, index, arena));
    const auto k = Products::columns(head.k, arena);
    Products::Tile scores(kTileRows, head.n, arena), weights(kTileRows, head.n, arena);
    const Matrix scaled = arena.matrix(kTileRows, head.d);
    float* statistics = arena.floats(kTileRows * activation_->statistics());
    for_each_piece(head.n, kTileRows, [&](int64_t first, int64_t rows) {
      const Matrix q = scaled.row_block(0, rows), s = scores.panel(0, rows, head.n), p = weights.panel(0, rows, head.n);
      scale_rows(head.score_scale, nullptr, 0, head.q.row_block(first, rows), q);
      Products::scores(Products::left(q, arena), k, 0, head.n, s);
      scale_rows(1.0f, nullptr, 0, s, p);
      const ScoreTile tile = head.tile(p, first, 0, nullptr, 0);
      float earlier[kTileRows];
      activation_->forward_begin(tile, statistics);
      activation_->forward(tile, statistics, earlier);
      activation_->forward_end(tile, statistics);
      scale_rows(1.0f, statistics, activation_->statistics(), p, p);
      const ScoreTile whole = head.tile(s, first, 0, nullptr, 0);
      for (int64_t i = 0; i < rows; ++i) {
        const auto keys = static_cast<size_t>(tile.keys(i));
        visit({index,
               first + i,
               {s.row(i), keys},
               {p.row(i), keys},
               activation_->jacobian_square(whole, i, p.row(i), statistics + i * activation_->statistics())});
      }
    });
  }
}

double TiledKernel::flops(int64_t tokens, bool training, float dropout) const {
  return dense_flops(tokens, training) * (causal_ ? 0.5 : 1.0);
}

}  // namespace lra
