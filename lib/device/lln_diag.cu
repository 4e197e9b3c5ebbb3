// lln mixed with softmax inside blocks of D tokens (lib/attention/lln_diag.cpp): the blocks are attention by panels
// over the batch cut into them.
#include <cmath>
#include <string>

#include "lib/device/feature_map.h"
#include "lib/device/lln_diag.h"
#include "lib/device/panels.h"
#include "lib/device/team.h"

namespace lra::device {
namespace {

// Factors of the two parts of a column.
struct Mix {
  const float *r = nullptr, *p = nullptr;  // (H*D); null: 1/2, and 1 - r

  LRA_KERNEL float of_smooth(int64_t column) const { return r == nullptr ? 0.5f : r[column]; }
  LRA_KERNEL float of_block(int64_t column) const {
    return p != nullptr ? p[column] : r != nullptr ? 1.0f - r[column] : 0.5f;
  }
};

class LlnDiag final : public Attention {
 public:
  LlnDiag(const AttentionSpec& spec, const AttentionShape& shape)
      : d_(shape.head_dim),
        mix_(spec.get("mix")),
        lln_(make_feature_map(shape, lln_features(shape), false)),
        blocks_(make_panels(shape, softmax_rows(), 1.0f / std::sqrt(static_cast<float>(d_)), false, {})) {}

  bool linear() const override { return true; }
  int64_t saved_floats(int64_t) const override { return 0; }

  void forward(Context c, const AttentionCall& call, Matrix out, float*) const override {
    const Scratch::Scope scope(c.scratch);
    const RaggedBatch cut = cut_batch(call.batch, d_, c.scratch);
    const Parts parts = parts_of(c, call, cut);
    const Mix mix = mix_of(call);
    const Matrix smooth = parts.smooth, block = parts.block;
    launch_each(c.device, out.rows * out.cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t column = i % out.cols;
      out.data[i / out.cols * out.stride + column] =
          mix.of_smooth(column) * smooth.data[i] + mix.of_block(column) * block.data[i];
    });
  }

  void backward(Context c, const AttentionCall& call, const float*, const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    const ConstMatrix d_out = slopes.d_out;
    const int64_t rows = d_out.rows, cols = d_out.cols;
    const RaggedBatch cut = cut_batch(call.batch, d_, c.scratch);
    const Parts parts = parts_of(c, call, cut);
    const Mix mix = mix_of(call);
    const Matrix smooth = parts.smooth, block = parts.block;
    const Matrix d_smooth = c.scratch.matrix(rows, cols), d_block = c.scratch.matrix(rows, cols);
    // What parts become: their own gradients for r and p.
    launch_each(c.device, rows * cols, [=] LRA_KERNEL(int64_t i) {
      const int64_t column = i % cols;
      const float g = d_out.data[i / cols * d_out.stride + column];
      d_smooth.data[i] = mix.of_smooth(column) * g;
      d_block.data[i] = mix.of_block(column) * g;
      smooth.data[i] = g * (mix.p != nullptr ? smooth.data[i] : smooth.data[i] - block.data[i]);
      block.data[i] *= g;
    });
    if (mix.r != nullptr && slopes.d_parameters[0] != nullptr) add_column_sums(c, smooth, slopes.d_parameters[0]);
    if (mix.p != nullptr && slopes.d_parameters[1] != nullptr) add_column_sums(c, block, slopes.d_parameters[1]);

    AttentionSlopes of_lln = slopes, of_blocks = slopes;
    of_lln.d_out = d_smooth, of_lln.d_parameters = {};
    lln_->backward(c, call, nullptr, of_lln);
    const Matrix d = c.scratch.matrix(rows, 3 * cols);
    of_blocks.d_out = d_block, of_blocks.d_parameters = {};
    of_blocks.dq = d.col_block(0, cols), of_blocks.dk = d.col_block(cols, cols);
    of_blocks.dv = d.col_block(2 * cols, cols);
    blocks_->backward(c, in_blocks(call, cut), nullptr, of_blocks);
    add(c, of_blocks.dq, slopes.dq);
    add(c, of_blocks.dk, slopes.dk);
    add(c, of_blocks.dv, slopes.dv);
  }

 private:
  struct Parts {
    Matrix smooth, block;  // (tokens, H*D)
  };
  Parts parts_of(Context c, const AttentionCall& call, const RaggedBatch& cut) const {
    const Parts parts = {c.scratch.matrix(call.q.rows, call.q.cols), c.scratch.matrix(call.q.rows, call.q.cols)};
    lln_->forward(c, call, parts.smooth, nullptr);
    blocks_->forward(c, in_blocks(call, cut), parts.block, nullptr);
    return parts;
  }
  static AttentionCall in_blocks(const AttentionCall& call, const RaggedBatch& cut) {
    return {
        .batch = cut, .q = call.q, .k = call.k, .v = call.v, .x = call.x, .parameters = {}, .training = call.training};
  }
  Mix mix_of(const AttentionCall& call) const {
    return {mix_ == "mean" ? nullptr : call.parameters[0], mix_ == "scale" ? call.parameters[1] : nullptr};
  }

  int64_t d_;
  std::string mix_;
  std::unique_ptr<Attention> lln_, blocks_;
};

}  // namespace

std::unique_ptr<Attention> make_lln_diag(const AttentionSpec& spec, const AttentionShape& shape) {
  return std::make_unique<LlnDiag>(spec, shape);
}

}  // namespace lra::device
