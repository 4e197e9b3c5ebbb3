#include "lib/attention/tiled_kernel.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/row_kernels.h"
#include "lib/attention/tile_matmul.h"
#include "lib/ops/dropout.h"

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
  int64_t n, d, width;  // tokens, head width, the same in whole vectors
  float score_scale;
  ConstMatrix q, k, v;
  const AttentionInput& in;

  Head(const AttentionInput& input, const AttentionShape& shape, int head)
      : index(head),
        n(input.q.rows),
        d(shape.head_dim),
        width(padded_width(d)),
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
  // Queries first … first + count - 1, scaled: (count, D).
  Matrix scaled_queries(int64_t first, int64_t count, float* memory) const {
    const Matrix scaled(memory, count, d);
    scale_rows(score_scale, nullptr, 0, q.row_block(first, count), scaled);
    return scaled;
  }
  float* transposed(ConstMatrix x, Arena& arena) const {
    float* panels = arena.floats(padded_columns(n) * d);
    pack_transposed(x, panels);
    return panels;
  }
  ConstMatrix padded(ConstMatrix x, Arena& arena) const {
    const Matrix rows = arena.matrix(x.rows, width);
    scale_rows(1.0f, nullptr, 0, x, rows);
    return rows;
  }
};

// Rows of a tile apart by an odd number of cache lines, so that they do not share cache sets.
int64_t tile_stride(int64_t keys) { return (padded_columns(keys) + 31) / 32 * 32 + 16; }

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

void TiledKernel::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  const int64_t n = in.q.rows;
  const Sizes size = sizes(n);
  const int width = activation_->statistics();
  for (int index = 0; index < shape().heads; ++index) {
    const Arena::Scope scope(arena);
    const Head head(in, shape(), index);
    const SavedHead kept(saved, index, n, width, in.dropout);
    const float* k = head.transposed(head.k, arena);
    const ConstMatrix v = head.padded(head.v, arena);
    float* scaled = arena.floats(size.queries * head.d);
    const int64_t stride = tile_stride(std::min(size.keys, n));
    float* tile = arena.floats(kTileRows * stride);
    const Matrix sums = arena.matrix(size.queries, head.width);
    float* own_statistics = arena.floats(size.queries * width);
    BlockMasks masks(in, index, size.queries, kept.mask, arena);
    for_each_piece(n, size.queries, [&](int64_t first, int64_t count) {
      const Matrix q = head.scaled_queries(first, count, scaled);
      masks.take(first, count, false);
      float* statistics = kept.statistics != nullptr ? kept.statistics + first * width : own_statistics;
      const ScoreTile block = head.tile(Matrix(nullptr, count, 0), first, 0, masks, 0);
      activation_->forward_begin(block, statistics);
      for_each_piece(n, size.keys, [&](int64_t key, int64_t keys) {
        for_each_piece(count, kTileRows, [&](int64_t at, int64_t rows) {
          const Matrix s(tile, rows, keys, stride);
          tile_scores(q.row_block(at, rows), k, key, keys, s);
          float earlier[kTileRows];
          std::fill_n(earlier, rows, 1.0f);
          activation_->forward(head.tile(s, first + at, key, masks, at), statistics + at * width, earlier);
          if (key > 0 && std::any_of(earlier, earlier + rows, [](float x) { return x != 1.0f; })) {
            scale_rows(1.0f, earlier, 1, sums.row_block(at, rows), sums.row_block(at, rows));
          }
          tile_matmul(s, Transpose::kNo, v.row_block(key, keys), sums.row_block(at, rows),
                      key == 0 ? Write::kOver : Write::kAdd);
        });
      });
      activation_->forward_end(block, statistics);
      scale_rows(masks.scale(), statistics, width, sums.row_block(0, count).col_block(0, head.d),
                 out.row_block(first, count).col_block(index * head.d, head.d));
    });
  }
}

void TiledKernel::backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                           const AttentionGradients& gradients, Arena& arena) const {
  const int64_t n = in.q.rows;
  const Sizes size = sizes(n);
  const int width = activation_->statistics();
  for (int index = 0; index < shape().heads; ++index) {
    const Arena::Scope scope(arena);
    const Head head(in, shape(), index);
    const SavedHead kept(const_cast<float*>(saved), index, n, width, in.dropout);
    const float* k_columns = head.transposed(head.k, arena);
    const float* v_columns = head.transposed(head.v, arena);
    const ConstMatrix k_rows = head.padded(head.k, arena);
    const Matrix dk = arena.matrix(n, head.width), dv = arena.matrix(n, head.width);
    float* scaled = arena.floats(size.queries * head.d);
    const Matrix q_rows = arena.matrix(size.queries, head.width);  // scaled queries
    const Matrix d_rows = arena.matrix(size.queries, head.width);  // factor * dropout scale * dO
    const Matrix dq = arena.matrix(size.queries, head.width);
    const int64_t stride = tile_stride(std::min(size.keys, n));
    float* s_tile = arena.floats(size.queries * stride);
    float* g_tile = arena.floats(size.queries * stride);
    float* row_dots = arena.floats(size.queries);
    BlockMasks masks(in, index, size.queries, kept.mask, arena);
    for_each_piece(n, size.queries, [&](int64_t first, int64_t count) {
      const float* statistics = kept.statistics + first * width;
      const Matrix q = head.scaled_queries(first, count, scaled);
      const ConstMatrix d_out = gradients.d_out.row_block(first, count).col_block(index * head.d, head.d);
      scale_rows(1.0f, nullptr, 0, q, q_rows.row_block(0, count));
      scale_rows(masks.scale(), statistics, width, d_out, d_rows.row_block(0, count));
      dot_rows(d_out, out.row_block(first, count).col_block(index * head.d, head.d), row_dots);
      masks.take(first, count, true);
      for_each_piece(n, size.keys, [&](int64_t key, int64_t keys) {
        const Matrix s(s_tile, count, keys, stride), g(g_tile, count, keys, stride);
        for_each_piece(count, kTileRows, [&](int64_t at, int64_t rows) {
          // The same bits as in the forward pass.
          tile_scores(q.row_block(at, rows), k_columns, key, keys, s.row_block(at, rows));
          tile_scores(d_rows.row_block(at, rows).col_block(0, head.d), v_columns, key, keys, g.row_block(at, rows));
          activation_->backward(head.tile(s.row_block(at, rows), first + at, key, masks, at), statistics + at * width,
                                row_dots + at, g.row_block(at, rows), gradients.d_parameters);
          tile_matmul(g.row_block(at, rows), Transpose::kNo, k_rows.row_block(key, keys), dq.row_block(at, rows),
                      key == 0 ? Write::kOver : Write::kAdd);
        });
        const Write write = first == 0 ? Write::kOver : Write::kAdd;
        tile_matmul(s, Transpose::kYes, d_rows.row_block(0, count), dv.row_block(key, keys), write);
        tile_matmul(g, Transpose::kYes, q_rows.row_block(0, count), dk.row_block(key, keys), write);
      });
      scale_rows(head.score_scale, nullptr, 0, dq.row_block(0, count).col_block(0, head.d),
                 gradients.dq.row_block(first, count).col_block(index * head.d, head.d));
    });
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(dk.row(i), head.d, gradients.dk.row(i) + index * head.d);
      std::copy_n(dv.row(i), head.d, gradients.dv.row(i) + index * head.d);
    }
  }
}

double TiledKernel::flops(int64_t tokens, bool training, float dropout) const { return dense_flops(tokens, training); }

}  // namespace lra
