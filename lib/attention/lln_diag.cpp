// lln-diag (Nahshan et al. 2023, arXiv 2311.13541): linear log-normal attention (lln.cpp) mixed with softmax inside
// blocks of D consecutive tokens, which gives back the sharp weights between neighbours. mix=mean: the average; ratio:
// r ⊙ lln + (1 - r) ⊙ block; scale: r ⊙ lln + p ⊙ block, with learned r, p (H, D).
#include <algorithm>
#include <cmath>

#include "lib/attention/families.h"
#include "lib/attention/feature_rows.h"
#include "lib/attention/lln.h"
#include "lib/attention/row_kernels.h"

namespace lra {
namespace {

constexpr double kStart = 0.5;  // of r and p

class LlnDiag final : public AttentionKernel {
 public:
  LlnDiag(const AttentionSpec& spec, const AttentionShape& shape)
      : AttentionKernel(shape, spec), lln_(make_lln(spec, shape)), d_(shape.head_dim), mix_(spec.get("mix")) {
    if (mix_ != "mean") parameters_.push_back({"r", {shape.heads, d_}, start_constant(kStart)});
    if (mix_ == "scale") parameters_.push_back({"p", {shape.heads, d_}, start_constant(kStart)});
  }

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  // The output of lln, then what lln saves.
  int64_t saved_floats(int64_t tokens, float dropout) const override {
    return smooth_floats(tokens) + lln_->saved_floats(tokens, dropout);
  }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override;
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override;
  double flops(int64_t tokens, bool training, float dropout) const override {
    // Blocks: scores and their product with V; backward both again and four gradients.
    const double block = 2.0 * static_cast<double>(tokens * std::min(d_, tokens) * d_ * shape().heads);
    return lln_->flops(tokens, training, dropout) + (training ? 8.0 : 2.0) * block;
  }
  std::string form(bool, float) const override { return "linear"; }
  bool dropout_applies() const override { return false; }
  // Other mixtures differ by column of V.
  bool has_weights() const override { return mix_ == "mean"; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override;

 private:
  int64_t smooth_floats(int64_t tokens) const { return (tokens * shape().heads * d_ + 15) / 16 * 16; }
  // Factors of the two parts of column c of a head.
  float of_smooth(const AttentionInput& in, int64_t at) const { return mix_ == "mean" ? 0.5f : in.parameters[0][at]; }
  float of_block(const AttentionInput& in, int64_t at) const {
    if (mix_ == "mean") return 0.5f;
    return mix_ == "ratio" ? 1.0f - in.parameters[0][at] : in.parameters[1][at];
  }

  struct Block {
    int64_t first, count;
    ConstMatrix q, k, v;
    Matrix weights;  // softmax
  };
  // body(block) for the blocks of a head.
  template <class Body>
  void for_each_block(const AttentionInput& in, int64_t head, Arena& arena, const Body& body) const {
    const Arena::Scope scope(arena);
    float* weights = arena.floats(d_ * d_);
    for (int64_t first = 0; first < in.q.rows; first += d_) {
      const int64_t count = std::min(d_, in.q.rows - first);
      const auto rows = [&](ConstMatrix x) { return x.col_block(head * d_, d_).row_block(first, count); };
      const Block block = {first, count, rows(in.q), rows(in.k), rows(in.v), {weights, count, count}};
      matmul(block.q, Transpose::kNo, block.k, Transpose::kYes, block.weights, Write::kOver, scale());
      softmax_rows(block.weights);
      body(block);
    }
  }
  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(d_))); }

  std::unique_ptr<AttentionKernel> lln_;
  int64_t d_;
  std::string mix_;
  std::vector<KernelParameter> parameters_;
};

void LlnDiag::forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const {
  const Arena::Scope scope(arena);
  const Matrix smooth(saved != nullptr ? saved : arena.floats(smooth_floats(in.q.rows)), out.rows, out.cols);
  lln_->forward(in, smooth, saved != nullptr ? saved + smooth_floats(in.q.rows) : nullptr, arena);
  run_parts(in.fork, shape().heads, arena, [&](int64_t head, Arena& scratch) {
    const Matrix mixed = scratch.matrix(d_, d_);
    for_each_block(in, head, scratch, [&](const Block& block) {
      const Matrix y = mixed.row_block(0, block.count);
      matmul(block.weights, Transpose::kNo, block.v, Transpose::kNo, y, Write::kOver);
      for (int64_t i = 0; i < block.count; ++i) {
        for (int64_t c = 0; c < d_; ++c) {
          const int64_t at = head * d_ + c;
          out.row(block.first + i)[at] =
              of_smooth(in, at) * smooth.row(block.first + i)[at] + of_block(in, at) * y.row(i)[c];
        }
      }
    });
  });
}

void LlnDiag::backward(const AttentionInput& in, ConstMatrix out, const float* saved,
                       const AttentionGradients& gradients, Arena& arena) const {
  const Arena::Scope scope(arena);
  const int64_t n = out.rows;
  const ConstMatrix smooth(saved, n, out.cols);
  const Matrix d_smooth = arena.matrix(n, out.cols);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t at = 0; at < out.cols; ++at) d_smooth.row(i)[at] = of_smooth(in, at) * gradients.d_out.row(i)[at];
  }
  AttentionGradients of_lln = gradients;
  of_lln.d_out = d_smooth;
  of_lln.d_parameters = {};
  lln_->backward(in, smooth, saved + smooth_floats(n), of_lln, arena);
  run_parts(in.fork, shape().heads, arena, [&](int64_t head, Arena& scratch) {
    const Matrix all_y = scratch.matrix(d_, d_), all_dy = scratch.matrix(d_, d_);
    float* all_ds = scratch.floats(d_ * d_);
    for_each_block(in, head, scratch, [&](const Block& block) {
      const Matrix y = all_y.row_block(0, block.count), dy = all_dy.row_block(0, block.count);
      const Matrix ds(all_ds, block.count, block.count);
      matmul(block.weights, Transpose::kNo, block.v, Transpose::kNo, y, Write::kOver);
      for (int64_t i = 0; i < block.count; ++i) {
        for (int64_t c = 0; c < d_; ++c) {
          const int64_t at = head * d_ + c;
          const float g = gradients.d_out.row(block.first + i)[at], s = smooth.row(block.first + i)[at];
          dy.row(i)[c] = of_block(in, at) * g;
          if (mix_ == "ratio") gradients.d_parameters[0][at] += g * (s - y.row(i)[c]);
          if (mix_ != "scale") continue;
          gradients.d_parameters[0][at] += g * s;
          gradients.d_parameters[1][at] += g * y.row(i)[c];
        }
      }
      const auto rows = [&](Matrix x) { return x.col_block(head * d_, d_).row_block(block.first, block.count); };
      matmul(block.weights, Transpose::kYes, dy, Transpose::kNo, rows(gradients.dv), Write::kAdd);
      matmul(dy, Transpose::kNo, block.v, Transpose::kYes, ds, Write::kOver);
      softmax_rows_backward(block.weights, ds, ds);
      matmul(ds, Transpose::kNo, block.k, Transpose::kNo, rows(gradients.dq), Write::kAdd, scale());
      matmul(ds, Transpose::kYes, block.q, Transpose::kNo, rows(gradients.dk), Write::kAdd, scale());
    });
  });
}

void LlnDiag::visit_weights(const AttentionInput& in, Arena& arena,
                            const std::function<void(const WeightRow&)>& visit) const {
  const Arena::Scope scope(arena);
  const int64_t n = in.q.rows;
  const Matrix blocks = arena.matrix(shape().heads * n, d_);
  for (int64_t head = 0; head < shape().heads; ++head) {
    for_each_block(in, head, arena, [&](const Block& block) {
      scale_rows(1.0f, nullptr, 0, block.weights, blocks.row_block(head * n + block.first, block.count));
    });
  }
  std::vector<float> mixed;
  lln_->visit_weights(in, arena, [&](const WeightRow& row) {
    mixed.assign(row.weights.begin(), row.weights.end());
    const int64_t first = row.query / d_ * d_;
    for (int64_t j = 0; j < std::min(d_, n - first); ++j) mixed[first + j] += blocks.row(row.head * n + row.query)[j];
    for (float& weight : mixed) weight *= 0.5f;
    visit({row.head, row.query, {}, mixed, std::nullopt});
  });
}

ref::Row lln_diag_reference(const ref::AttentionProblem& problem) {
  const int64_t d = problem.shape.head_dim, n = problem.tokens(), width = d * problem.shape.heads;
  const std::string& mix = problem.spec.get("mix");
  ref::Row out(n * width, 0.0);
  for (int head = 0; head < problem.shape.heads; ++head) {
    const std::vector<ref::Row> smooth = ref::lln_weights(problem, head);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t first = i / d * d;
      ref::Row x(std::min(d, n - first));
      for (int64_t j = 0; j < std::ssize(x); ++j) {
        x[j] = problem.dot(head, i, first + j) / std::sqrt(static_cast<double>(d));
      }
      const ref::Row block = ref::softmax(x);
      for (int64_t at = head * d; at < (head + 1) * d; ++at) {
        double of_smooth = 0.0, of_block = 0.0;
        for (int64_t j = 0; j < n; ++j) of_smooth += smooth[i][j] * problem.v.row(j)[at];
        for (int64_t j = 0; j < std::ssize(x); ++j) of_block += block[j] * problem.v.row(first + j)[at];
        const double r = mix == "mean" ? 0.5 : problem.parameters[0][at];
        out[i * width + at] = r * of_smooth + (mix == "scale" ? problem.parameters[1][at] : 1.0 - r) * of_block;
      }
    }
  }
  return out;
}

}  // namespace

std::vector<AttentionFamily> lln_diag_families() {
  return {{.name = "lln-diag",
           .options = {{"mix",
                        AttentionOption::Kind::kChoice,
                        "mean",
                        {"mean", "ratio", "scale"},
                        "of lln and blocks: average, or learned r and 1 - r, r and p"}},
           .idea = "lln mixed with softmax inside blocks of D tokens",
           .source = "arXiv 2311.13541",
           .kind = "feature map",
           .cost = "as lln, and softmax of D scores a token",
           .linear = "exact",
           .ours = "blocks count real tokens",
           .jacobian = false,
           .make = [](const AttentionSpec& spec, const AttentionShape& shape) -> std::unique_ptr<AttentionKernel> {
             return std::make_unique<LlnDiag>(spec, shape);
           },
           .reference = lln_diag_reference,
           .examples = {"lln-diag", "lln-diag:mix=ratio", "lln-diag:mix=scale"}}};
}

}  // namespace lra
