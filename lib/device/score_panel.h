// Attention by panels: for a block of queries of several sequences at once, the scores with all keys of their sequence.
// A family is a map of rows of scores, P = f(S, row, n), that the driver (panels.h) runs between batched products.
// Scores exist for one panel at a time and are made again in the backward pass: memory is bounded whatever the batch.
#pragma once

#include <memory>

#include "lib/device/ops.h"

namespace lra {
struct AttentionShape;
}

namespace lra::device {

struct AttentionCall;
struct AttentionSlopes;

// What a kernel needs to find the rows of a panel, by value. A sequence's scores are (H, queries, padded length).
struct ScorePanel {
  const int64_t* sequence_first = nullptr;  // (sequences of the batch + 1)
  const int64_t* padded_first = nullptr;    // the same of lengths rounded up
  const uint32_t* example = nullptr;        // (sequences of the batch)
  int64_t begin = 0, count = 0;             // sequences of this panel
  int64_t first_query = 0, queries = 0;     // of each of them; those it has
  int64_t longest = 0;                      // row
  int64_t heads = 0;
  bool causal = false, training = false;
  uint32_t dropout_key[2] = {};
  uint32_t dropout_site = 0;  // of head 0
  float dropout = 0.0f;
  float *s = nullptr, *g = nullptr;  // scores, and gradients (backward)
  float* scratch = nullptr;          // row_scratch() times as many floats, a row's together
  float* numbers = nullptr;          // (rows, numbers of the family) for the gradients of parameters (backward)
  const float* context = nullptr;    // (tokens of the batch, H, width) of the family, or null
  float* d_context = nullptr;        // its twin, added to (backward)

  int64_t rows() const { return count * heads * queries; }
};

class ScoreRows {
 public:
  virtual ~ScoreRows() = default;
  // s: scores -> weights after dropout, 0 behind a row's keys.
  virtual void forward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const = 0;
  // s: the same; g: dL/dP after dropout -> dL/dscores, 0 behind a row's keys.
  virtual void backward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const = 0;
  // Floats of scratch for every score.
  virtual int row_scratch() const { return 0; }
  // Numbers that a row gives for the gradients of parameters, and what is done with those of a panel: number i is added
  // to parameter i (H) at the row's head.
  virtual int numbers() const = 0;
  virtual void add_numbers(Context c, const ScorePanel& panel, std::span<float* const> d_parameters) const;

  // Numbers that rows need besides their scores, `width` a token and head, made of the inputs before the panels; and
  // the way back after them, from their gradients (which are the callee's to overwrite) to those of inputs and
  // parameters.
  virtual int64_t context_width() const { return 0; }
  virtual void prepare(Context c, const AttentionCall& call, float* context) const {}
  virtual void after_backward(Context c, const ScorePanel& panel) const {}  // of each panel
  virtual void prepare_backward(Context c, const AttentionCall& call, const float* context, float* d_context,
                                const AttentionSlopes& slopes) const {}
};

// out[head * stride] += the sum of the panel's numbers with index `number` of `of`.
void add_row_numbers(Context c, const ScorePanel& panel, int number, int of, float* out, int64_t stride = 1);

}  // namespace lra::device
