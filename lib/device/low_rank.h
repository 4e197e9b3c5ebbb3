// Attention through fewer rows than tokens (lib/attention/linformer.cpp, nystrom.cpp), and the products and kernels
// that both are made of.
#pragma once

#include <memory>

#include "lib/device/attention.h"

namespace lra::device {

std::unique_ptr<Attention> make_linformer(const AttentionSpec& spec, const AttentionShape& shape);
std::unique_ptr<Attention> make_nystrom(const AttentionSpec& spec, const AttentionShape& shape);

// Rows of `width` numbers one after another become their softmax.
void weigh_rows(Context c, int64_t rows, int64_t width, float* x);
// dp -> p (dp - p·dp) of each row.
void weigh_rows_backward(Context c, int64_t rows, int64_t width, const float* p, float* dp);

// x (tokens, H*W) of one sequence, its head 0.
template <class View>
View first_head(const AttentionCall& call, int64_t sequence, View x, int64_t heads) {
  return x.row_block(call.batch.first[sequence], call.batch.length[sequence]).col_block(0, x.cols / heads);
}

// Products of every head of the sequences that have tokens; marks are (sequences, H, rows, D) one after another.
class SequenceProducts {
 public:
  SequenceProducts(const AttentionCall& call, int64_t heads, int64_t rows, int64_t d)
      : call_(call), heads_(heads), rows_(rows), d_(d) {}

  // marks (rows, D) = alpha xᵀ y, x (tokens, H*rows), y (tokens, H*D).
  void reduce(Context c, ConstMatrix x, ConstMatrix y, float* marks, float alpha = 1.0f, float beta = 0.0f) const;
  // y (tokens, H*D) = alpha x marks, x (tokens, H*rows).
  void expand(Context c, ConstMatrix x, const float* marks, Matrix y, float alpha = 1.0f, float beta = 0.0f) const;
  // x (tokens, H*rows) = alpha y marksᵀ, y (tokens, H*D).
  void meet(Context c, ConstMatrix y, const float* marks, Matrix x, float alpha = 1.0f, float beta = 0.0f) const;

 private:
  template <class Make>
  void all(Context c, const Make& make) const;

  const AttentionCall& call_;
  int64_t heads_, rows_, d_;
};

}  // namespace lra::device
