#include "lib/attention/tiled_kernel.h"

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

// The masks of a block of rows; none without dropout.
class BlockMasks {
 public:
  // saved: the rows of the whole head, or null.
  BlockMasks(const AttentionInput& in, int head, int64_t block, uint8_t* saved, Arena& arena)
      : rate_(in.dropout), keys_(in.q.rows), bytes_(mask_bytes(keys_)), saved_(saved) {
    if (rate_ <= 0.0f) return;
    key_ = {in.dropout_key, dropout_site(DropoutSite::kAttention, in.layer, head), in.example};
    if (saved_ == nullptr) own_ = reinterpret_cast<uint8_t*>(arena.floats(block * bytes_ / 4 + kMaskSlack));
  }
  // Entry (row, key 0) of the rows at hand, or null.
  const uint8_t* rows() const { return rows_; }
  int64_t stride() const { return bytes_; }
  // Draws the rows first … first + count - 1, or finds them where the forward pass left them.
  void take(int64_t first, int64_t count, bool drawn) {
    if (rate_ <= 0.0f) return;
    rows_ = saved_ != nullptr ? saved_ + first * bytes_ : own_;
    if (drawn && saved_ != nullptr) return;
    const PhaseScope phase(Phase::kMasks);
    for (int64_t i = 0; i < count; ++i) {
      dropout_mask_row(key_, rate_, static_cast<uint32_t>(first + i), keys_, rows_ + i * bytes_);
    }
  }
  float scale() const { return rate_ > 0.0f ? dropout_scale(rate_) : 1.0f; }

 private:
  float rate_;
  int64_t keys_, bytes_;
  DropoutKey key_;
  uint8_t *saved_, *own_ = nullptr, *rows_ = nullptr;
};

// What both passes need of a head.
struct Head {
  int index;
  int64_t n, d;  // tokens, head width
  float score_scale;
  ConstMatrix q, k, v;
  const AttentionInput& in;

  Head(const AttentionInput& input, const AttentionShape& shape, int head)
      : index(head),
        n(input.q.rows),
        d(shape.head_dim),
        score_scale(1.0f / std::sqrt(static_cast<float>(d))),
        q(input.q.col_block(head * d, d)),
        k(input.k.col_block(head * d, d)),
        v(input.v.col_block(head * d, d)),
        in(input) {}

  // Rows first … of the masks at hand, against the keys from `key` on.
  ScoreTile tile(Matrix s, int64_t query, int64_t key, const BlockMasks& masks, int64_t first) const {
    const uint8_t* kept = masks.rows() == nullptr ? nullptr : masks.rows() + first * masks.stride() + key / 8;
    return {n, query, key, index, in.parameters, s, kept, masks.stride()};
  }
};

// Calls body(first, count) for pieces of at most `step` of 0 … n - 1.
template <class Body>
void for_each_piece(int64_t n, int64_t step, const Body& body) {
  for (int64_t first = 0; first < n; first += step) body(first, std::min(step, n - first));
}

}  // namespace

TiledKernel::TiledKernel(AttentionShape shape, AttentionSpec spec, std::vector<KernelParameter> parameters,
                         std::unique_ptr<ScoreActivation> activation)
    : AttentionKernel(shape, std::move(spec)), parameters_(std::move(parameters)), activation_(std::move(activation)) {}

TiledKernel::Sizes TiledKernel::sizes(int64_t tokens) const {
  // Measured on a Zen 4 core with 1 MiB of second-level cache, 24 to 192 queries by 256 to 1024 keys: within 3 % of the
  // best at 348, 1024 and 4096 tokens. Tiles of scores and of their gradients take 192 KiB together.
  constexpr int64_t kQueries = 48, kKeys = 512, kEntries = kQueries * kKeys * 4;
  static_assert(kQueries % kTileRows == 0 && kKeys % 128 == 0);
  if (!activation_->whole_rows()) return {kQueries, kKeys};
  const int64_t keys = std::max<int64_t>(tokens, 1);
  return {std::clamp(kEntries / keys / kTileRows * kTileRows, kTileRows, kQueries), keys};
}

int64_t TiledKernel::saved_floats(int64_t tokens, float dropout) const {
  return shape().heads * SavedHead::floats(tokens, activation_->statistics(), dropout);
}

template <class Products>
void TiledKernel::head_forward(const AttentionInput& in, int index, Matrix out, float* saved, Arena& arena) const {
  const Arena::Scope scope(arena);
  const Head head(in, shape(), index);
  const int64_t n = head.n, d = head.d;
  const Sizes size = sizes(n);
  const int width = activation_->statistics();
  const SavedHead kept(saved, index, n, width, in.dropout);
  const auto k = Products::columns(head.k, arena);
  const auto v = Products::rows(head.v, arena);
  const Matrix scaled = arena.matrix(size.queries, d);
  const Matrix sums = arena.matrix(size.queries, Products::width(d));
  float* own_statistics = arena.floats(size.queries * width);
  typename Products::Tile tile(kTileRows, std::min(size.keys, n), arena);
  BlockMasks masks(in, index, size.queries, kept.mask, arena);
  for_each_piece(n, size.queries, [&](int64_t first, int64_t count) {
    const Arena::Scope block_scope(arena);
    scale_rows(head.score_scale, nullptr, 0, head.q.row_block(first, count), scaled.row_block(0, count));
    const auto q = Products::left(scaled.row_block(0, count), arena);
    masks.take(first, count, false);
    float* statistics = kept.statistics != nullptr ? kept.statistics + first * width : own_statistics;
    const ScoreTile block = head.tile(Matrix(nullptr, count, 0), first, 0, masks, 0);
    activation_->forward_begin(block, statistics);
    for_each_piece(n, size.keys, [&](int64_t key, int64_t keys) {
      const auto values = Products::row_block(v, key, keys);
      for_each_piece(count, kTileRows, [&](int64_t at, int64_t rows) {
        const Matrix s = tile.panel(0, rows, keys), sum = sums.row_block(at, rows);
        Products::scores(q.row_block(at, rows), k, key, keys, s);
        float earlier[kTileRows];
        std::fill_n(earlier, rows, 1.0f);
        {
          const PhaseScope phase(Phase::kWeights);
          activation_->forward(head.tile(s, first + at, key, masks, at), statistics + at * width, earlier);
        }
        if (key > 0 && std::any_of(earlier, earlier + rows, [](float x) { return x != 1.0f; })) {
          scale_rows(1.0f, earlier, 1, sum, sum);
        }
        tile.multiply(s, values, sum, key == 0 ? Write::kOver : Write::kAdd);
      });
    });
    activation_->forward_end(block, statistics);
    scale_rows(masks.scale(), statistics, width, sums.row_block(0, count).col_block(0, d),
               out.row_block(first, count).col_block(index * d, d));
  });
}

template <class Products>
void TiledKernel::head_backward(const AttentionInput& in, int index, ConstMatrix out, const float* saved,
                                const AttentionGradients& gradients, Arena& arena) const {
  const Arena::Scope scope(arena);
  const Head head(in, shape(), index);
  const int64_t n = head.n, d = head.d, padded = Products::width(d);
  const Sizes size = sizes(n);
  const int width = activation_->statistics();
  const SavedHead kept(const_cast<float*>(saved), index, n, width, in.dropout);
  const auto k_columns = Products::columns(head.k, arena);
  const auto v_columns = Products::columns(head.v, arena);
  const auto k_rows = Products::rows(head.k, arena);
  const Matrix dk = arena.matrix(n, padded), dv = arena.matrix(n, padded);
  const Matrix scaled = arena.matrix(size.queries, d);    // queries
  const Matrix d_scaled = arena.matrix(size.queries, d);  // factor * dropout scale * dO
  const Matrix dq = arena.matrix(size.queries, padded);
  float* row_dots = arena.floats(size.queries);
  typename Products::Tile s_tile(size.queries, std::min(size.keys, n), arena);
  typename Products::Tile g_tile(size.queries, std::min(size.keys, n), arena);
  BlockMasks masks(in, index, size.queries, kept.mask, arena);
  for_each_piece(n, size.queries, [&](int64_t first, int64_t count) {
    const Arena::Scope block_scope(arena);
    const float* statistics = kept.statistics + first * width;
    const ConstMatrix d_out = gradients.d_out.row_block(first, count).col_block(index * d, d);
    const Matrix q_block = scaled.row_block(0, count), d_block = d_scaled.row_block(0, count);
    scale_rows(head.score_scale, nullptr, 0, head.q.row_block(first, count), q_block);
    scale_rows(masks.scale(), statistics, width, d_out, d_block);
    dot_rows(d_out, out.row_block(first, count).col_block(index * d, d), row_dots);
    const auto q = Products::left(q_block, arena), d_left = Products::left(d_block, arena);
    const auto q_rows = Products::rows(q_block, arena), d_rows = Products::rows(d_block, arena);
    masks.take(first, count, true);
    for_each_piece(n, size.keys, [&](int64_t key, int64_t keys) {
      const auto k_tile = Products::row_block(k_rows, key, keys);
      for_each_piece(count, kTileRows, [&](int64_t at, int64_t rows) {
        const Matrix s = s_tile.panel(at, rows, keys), g = g_tile.panel(at, rows, keys);
        Products::scores(q.row_block(at, rows), k_columns, key, keys, s);  // the same bits as in the forward pass
        Products::scores(d_left.row_block(at, rows), v_columns, key, keys, g);
        {
          const PhaseScope phase(Phase::kWeights);
          activation_->backward(head.tile(s, first + at, key, masks, at), statistics + at * width, row_dots + at, g,
                                gradients.d_parameters);
        }
        g_tile.multiply(g, k_tile, dq.row_block(at, rows), key == 0 ? Write::kOver : Write::kAdd);
        s_tile.finish(s, at);
        g_tile.finish(g, at);
      });
      const Write write = first == 0 ? Write::kOver : Write::kAdd;
      s_tile.multiply_transposed(count, keys, d_rows, dv.row_block(key, keys), write);
      g_tile.multiply_transposed(count, keys, q_rows, dk.row_block(key, keys), write);
    });
    scale_rows(head.score_scale, nullptr, 0, dq.row_block(0, count).col_block(0, d),
               gradients.dq.row_block(first, count).col_block(index * d, d));
  });
  scale_rows(1.0f, nullptr, 0, dk.col_block(0, d), gradients.dk.col_block(index * d, d));
  scale_rows(1.0f, nullptr, 0, dv.col_block(0, d), gradients.dv.col_block(index * d, d));
}

void TiledKernel::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  for (int head = 0; head < shape().heads; ++head) {
    if (in.precision == Precision::kBfloat16) {
      head_forward<Bfloat16Products>(in, head, out, saved, arena);
    } else {
      head_forward<Float32Products>(in, head, out, saved, arena);
    }
  }
}

void TiledKernel::backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                           const AttentionGradients& gradients, Arena& arena) const {
  for (int head = 0; head < shape().heads; ++head) {
    if (in.precision == Precision::kBfloat16) {
      head_backward<Bfloat16Products>(in, head, out, saved, gradients, arena);
    } else {
      head_backward<Float32Products>(in, head, out, saved, gradients, arena);
    }
  }
}

double TiledKernel::flops(int64_t tokens, bool training, float dropout) const { return dense_flops(tokens, training); }

}  // namespace lra
