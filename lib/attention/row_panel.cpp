#include "lib/attention/row_panel.h"

#include <algorithm>
#include <cmath>

#include "lib/attention/row_kernels.h"
#include "lib/ops/matmul.h"

namespace lra {
namespace {

// What both passes need of a head.
struct HeadViews {
  ConstMatrix q, k, v;
};

HeadViews head_views(const AttentionInput& in, int head, int64_t d) {
  return {in.q.col_block(head * d, d), in.k.col_block(head * d, d), in.v.col_block(head * d, d)};
}

Matrix contiguous(ConstMatrix m, Arena& arena) {
  Matrix copy = arena.matrix(m.rows, m.cols);
  for (int64_t i = 0; i < m.rows; ++i) std::copy_n(m.row(i), m.cols, copy.row(i));
  return copy;
}

// Rows apart by an odd number of cache lines, so that rows of a panel do not share cache sets.
int64_t panel_stride(int64_t keys) { return (keys + 31) / 32 * 32 + 16; }

// Draws the masks of a block of rows; empty without dropout.
class BlockMasks {
 public:
  BlockMasks(const AttentionInput& in, int head, int64_t block, Arena& arena)
      : rate_(in.dropout), keys_(in.q.rows), bytes_((keys_ + 127) / 128 * 16) {
    if (rate_ <= 0.0f) return;
    key_ = {in.dropout_key, dropout_site(DropoutSite::kAttention, in.layer, head), in.example};
    bits_ = reinterpret_cast<uint8_t*>(arena.floats(block * bytes_ / 4 + 4));  // vector loads may touch a little more
  }
  void draw(int64_t first, int64_t count) {
    if (bits_ == nullptr) return;
    for (int64_t i = 0; i < count; ++i) {
      dropout_mask_row(key_, rate_, static_cast<uint32_t>(first + i), keys_, bits_ + i * bytes_);
    }
  }
  void apply(int64_t i, float* row) const {
    if (bits_ != nullptr) mask_row(bits_ + i * bytes_, keys_, row);
  }
  float scale() const { return bits_ != nullptr ? dropout_scale(rate_) : 1.0f; }

 private:
  float rate_;
  int64_t keys_, bytes_;
  DropoutKey key_;
  uint8_t* bits_ = nullptr;
};

}  // namespace

RowPanelKernel::RowPanelKernel(AttentionShape shape, AttentionSpec spec, std::vector<KernelParameter> parameters,
                               std::unique_ptr<ScoreActivation> activation)
    : AttentionKernel(shape, std::move(spec)), parameters_(std::move(parameters)), activation_(std::move(activation)) {}

int64_t RowPanelKernel::block_rows(int64_t keys) {
  constexpr int64_t kRows = 96, kPanel = 96 * 4096;  // entries of the largest panel: 1.5 MiB
  return std::clamp<int64_t>(kPanel / std::max<int64_t>(keys, 1) / 8 * 8, 16, kRows);
}

int64_t RowPanelKernel::saved_floats(int64_t tokens) const {
  return static_cast<int64_t>(shape().heads) * tokens * activation_->statistics();
}

void RowPanelKernel::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  const int64_t n = in.q.rows, d = shape().head_dim, block = std::min(block_rows(n), n);
  if (n == 0) return;
  const float score_scale = 1.0f / std::sqrt(static_cast<float>(d));
  const int width = activation_->statistics();
  for (int head = 0; head < shape().heads; ++head) {
    const Arena::Scope scope(arena);
    const HeadViews view = head_views(in, head, d);
    const Matrix k = contiguous(view.k, arena);
    const Matrix v = contiguous(view.v, arena);
    const int64_t stride = panel_stride(n);
    float* panel = arena.floats(block * stride);
    float* statistics = arena.floats(block * width);
    BlockMasks masks(in, head, block, arena);
    for (int64_t first = 0; first < n; first += block) {
      const int64_t rows = std::min(block, n - first);
      const Matrix s(panel, rows, n, stride);
      matmul(view.q.row_block(first, rows), Transpose::kNo, k, Transpose::kYes, s, Write::kOver, score_scale);
      masks.draw(first, rows);
      float* row_statistics = saved != nullptr ? saved + (head * n + first) * width : statistics;
      for (int64_t i = 0; i < rows; ++i) {
        activation_->forward({n, head, in.parameters}, s.row(i), row_statistics + i * width);
        masks.apply(i, s.row(i));
      }
      const Matrix o = out.row_block(first, rows).col_block(head * d, d);
      matmul(s, Transpose::kNo, v, Transpose::kNo, o, Write::kOver);
      for (int64_t i = 0; i < rows; ++i) {
        scale_row(row_statistics[i * width] * masks.scale(), o.row(i), d, o.row(i));
      }
    }
  }
}

void RowPanelKernel::backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                              const AttentionGradients& gradients, Arena& arena) const {
  const int64_t n = in.q.rows, d = shape().head_dim, block = std::min(block_rows(n), n);
  if (n == 0) return;
  const float score_scale = 1.0f / std::sqrt(static_cast<float>(d));
  const int width = activation_->statistics();
  for (int head = 0; head < shape().heads; ++head) {
    const Arena::Scope scope(arena);
    const HeadViews view = head_views(in, head, d);
    const Matrix k = contiguous(view.k, arena);
    const Matrix v = contiguous(view.v, arena);
    const Matrix dk = arena.matrix(n, d), dv = arena.matrix(n, d);
    const Matrix q = arena.matrix(block, d);         // queries of the block
    const Matrix d_scaled = arena.matrix(block, d);  // factor * dropout scale * dO
    const int64_t stride = panel_stride(n);
    float* s_panel = arena.floats(block * stride);
    float* g_panel = arena.floats(block * stride);
    BlockMasks masks(in, head, block, arena);
    for (int64_t first = 0; first < n; first += block) {
      const int64_t rows = std::min(block, n - first);
      const Matrix s(s_panel, rows, n, stride), g(g_panel, rows, n, stride);
      const Matrix q_block = q.row_block(0, rows), d_block = d_scaled.row_block(0, rows);
      const ConstMatrix o = out.row_block(first, rows).col_block(head * d, d);
      const ConstMatrix d_out = gradients.d_out.row_block(first, rows).col_block(head * d, d);
      const float* statistics = saved + (head * n + first) * width;
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(view.q.row(first + i), d, q_block.row(i));
        scale_row(statistics[i * width] * masks.scale(), d_out.row(i), d, d_block.row(i));
      }
      // The same product on the same shapes as in the forward pass: the same bits.
      matmul(view.q.row_block(first, rows), Transpose::kNo, k, Transpose::kYes, s, Write::kOver, score_scale);
      matmul(d_block, Transpose::kNo, v, Transpose::kYes, g, Write::kOver);
      masks.draw(first, rows);
      for (int64_t i = 0; i < rows; ++i) {
        masks.apply(i, g.row(i));
        activation_->backward({n, head, in.parameters}, statistics + i * width, dot_row(d_out.row(i), o.row(i), d),
                              s.row(i), g.row(i), gradients.d_parameters);
        masks.apply(i, s.row(i));
      }
      const Write write = first == 0 ? Write::kOver : Write::kAdd;
      matmul(s, Transpose::kYes, d_block, Transpose::kNo, dv, write);
      matmul(g, Transpose::kYes, q_block, Transpose::kNo, dk, write, score_scale);
      matmul(g, Transpose::kNo, k, Transpose::kNo, gradients.dq.row_block(first, rows).col_block(head * d, d),
             Write::kOver, score_scale);
    }
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(dk.row(i), d, gradients.dk.row(i) + head * d);
      std::copy_n(dv.row(i), d, gradients.dv.row(i) + head * d);
    }
  }
}

double RowPanelKernel::flops(int64_t tokens, bool training, float dropout) const {
  return dense_flops(tokens, training);
}

}  // namespace lra
