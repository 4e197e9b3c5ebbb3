// Operations on a whole ragged batch, forward and backward side by side: those of lib/ops, whose headers define them,
// with the rows of all sequences in one matrix. Pointers and matrices are the device's. Gradients of parameters are
// added to, gradients of activations overwritten unless said otherwise; every sum has an order of its own, so that the
// same batch gives the same bits.
#pragma once

#include <array>
#include <cstdint>

#include "lib/device/memory.h"
#include "lib/device/ragged_batch.h"
#include "lib/ops/activations.h"
#include "lib/ops/adamw.h"

namespace lra::device {

// Where kernels run, and what they take for the moment.
struct Context {
  Device& device;
  Scratch& scratch;
};

// C = alpha op(A) op(B) + beta C.
Product product(ConstMatrix a, Transpose ta, ConstMatrix b, Transpose tb, Matrix c, float alpha = 1.0f,
                float beta = 0.0f);

// out (cols) += the sum of x's rows, in chunks of 64 rows, and so on with those sums.
void add_column_sums(Context c, ConstMatrix x, float* out);

// y += x.
void add(Context c, ConstMatrix x, Matrix y);

// x (N, in), weight (out, in), bias (out) or null, y (N, out).
void linear_forward(Context c, ConstMatrix x, ConstMatrix weight, const float* bias, Matrix y);
// dx is written, or added to with dx_write, and skipped when empty; d_bias null: none.
void linear_backward(Context c, ConstMatrix x, ConstMatrix weight, ConstMatrix dy, Matrix dx, Matrix d_weight,
                     float* d_bias, Write dx_write = Write::kOver);

// x, y (N, E); weight, bias (E); mean, rstd (N).
void layer_norm_forward(Context c, ConstMatrix x, const float* weight, const float* bias, float epsilon, Matrix y,
                        float* mean, float* rstd);
// dx is added to.
void layer_norm_backward(Context c, ConstMatrix x, const float* weight, const float* mean, const float* rstd,
                         ConstMatrix dy, Matrix dx, float* d_weight, float* d_bias);

// Dropout of the rows of a batch at a site (lib/ops/dropout.h).
struct RowDropout {
  const RaggedBatch& batch;
  std::array<uint32_t, 2> key{};
  uint32_t site = 0;
  float rate = 0.0f;  // 0: off
};

// y = dropout(x), y = x + dropout(branch): y may be x, or branch.
void dropout_copy(Context c, const RowDropout& dropout, ConstMatrix x, Matrix y);
void dropout_add(Context c, const RowDropout& dropout, ConstMatrix x, ConstMatrix branch, Matrix y);

// y = dropout(gelu(x)); dx = gelu'(x) dropout(dy), dx may be dy.
void gelu_dropout_forward(Context c, Gelu form, const RowDropout& dropout, ConstMatrix x, Matrix y);
void gelu_dropout_backward(Context c, Gelu form, const RowDropout& dropout, ConstMatrix x, ConstMatrix dy, Matrix dx);

// In place; the derivative at 0 is 0, y is what forward gave.
void relu_forward(Context c, Matrix x);
void relu_backward(Context c, ConstMatrix y, Matrix d);

// token (vocabulary, E), position (places, E), first (E) the learned first row or null; x (tokens, E).
void embedding_forward(Context c, const RaggedBatch& batch, ConstMatrix token, ConstMatrix position, const float* first,
                       Matrix x);
// d_position empty, d_first null: not trained.
void embedding_backward(Context c, const RaggedBatch& batch, ConstMatrix dx, Matrix d_token, Matrix d_position,
                        float* d_first);

// From the rows of each sequence to one, pooled (sequences, E).
struct Pooling {
  bool first;     // the first row; zeros where there is none
  float divisor;  // of the sum of the rows; 0: their number
};
void pool_forward(Context c, const RaggedBatch& batch, Pooling pooling, ConstMatrix x, Matrix pooled);
void pool_backward(Context c, const RaggedBatch& batch, Pooling pooling, ConstMatrix d_pooled, Matrix dx);

// pooled (2 B, E), two rows an example, -> in (B, 4 E): x, y, x y, x - y.
void combine_pair(Context c, ConstMatrix pooled, Matrix in);
// d_pooled (2 B, E).
void combine_pair_backward(Context c, ConstMatrix pooled, ConstMatrix d_in, Matrix d_pooled);

// Of each row of logits (B, classes), in double: losses (B), and d_logits (B, classes; may be empty) = weight *
// (softmax - onehot(label)).
void cross_entropy(Context c, ConstMatrix logits, const int32_t* labels, float weight, double* losses, Matrix d_logits);

// Global L2 norm, summed in double; waits for the device.
double l2_norm(Context c, const float* x, int64_t size);
void scale(Context c, float factor, float* x, int64_t size);
// As adamw_update of lib/ops/adamw.h.
void adamw_update(Context c, const AdamWSettings& settings, int64_t step, int64_t size, float* parameters,
                  const float* gradients, float* m, float* v);

}  // namespace lra::device
