#include "lib/attention/output_map.h"

#include <algorithm>

namespace lra {
namespace {

class MappedKernel final : public AttentionKernel {
 public:
  MappedKernel(std::unique_ptr<AttentionKernel> inner, std::unique_ptr<OutputMap> map)
      : AttentionKernel(inner->shape(), inner->spec()),
        inner_(std::move(inner)),
        map_(std::move(map)),
        parameters_(inner_->parameters()) {
    for (KernelParameter& parameter : map_->parameters()) parameters_.push_back(std::move(parameter));
  }

  const std::vector<KernelParameter>& parameters() const override { return parameters_; }
  // y, then what the kernel saves.
  int64_t saved_floats(int64_t tokens, float dropout) const override {
    return y_floats(tokens) + inner_->saved_floats(tokens, dropout);
  }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override {
    const Arena::Scope scope(arena);
    const Matrix y(saved != nullptr ? saved : arena.floats(y_floats(in.q.rows)), out.rows, out.cols);
    inner_->forward(of_kernel(in), y, saved != nullptr ? saved + y_floats(in.q.rows) : nullptr, arena);
    map_->forward(of_map(in), y, out);
  }
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override {
    const Arena::Scope scope(arena);
    const ConstMatrix y(saved, out.rows, out.cols);
    const Matrix dy = arena.matrix(out.rows, out.cols), dv = arena.matrix(out.rows, out.cols);
    std::fill_n(dv.data, dv.rows * dv.cols, 0.0f);
    map_->backward(of_map(in), y, gradients.d_out, dy, dv, gradients.d_parameters.subspan(own()));
    AttentionGradients of_inner = gradients;
    of_inner.d_out = dy;
    of_inner.d_parameters = gradients.d_parameters.first(own());
    inner_->backward(of_kernel(in), y, saved + y_floats(in.q.rows), of_inner, arena);
    for (int64_t i = 0; i < dv.rows; ++i) {
      for (int64_t c = 0; c < dv.cols; ++c) gradients.dv.row(i)[c] += dv.row(i)[c];
    }
  }
  double flops(int64_t tokens, bool training, float dropout) const override {
    return inner_->flops(tokens, training, dropout);
  }
  std::string form(bool training, float dropout) const override { return inner_->form(training, dropout); }
  bool dropout_applies() const override { return inner_->dropout_applies(); }
  bool has_weights() const override { return inner_->has_weights(); }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override {
    inner_->visit_weights(of_kernel(in), arena, visit);
  }

 private:
  size_t own() const { return inner_->parameters().size(); }
  // Whole cache lines, so that what follows is aligned as an arena would.
  int64_t y_floats(int64_t tokens) const { return (tokens * shape().heads * shape().head_dim + 15) / 16 * 16; }
  AttentionInput of_kernel(AttentionInput in) const {
    in.parameters = in.parameters.first(own());
    return in;
  }
  AttentionInput of_map(AttentionInput in) const {
    in.parameters = in.parameters.subspan(own());
    return in;
  }

  std::unique_ptr<AttentionKernel> inner_;
  std::unique_ptr<OutputMap> map_;
  std::vector<KernelParameter> parameters_;
};

}  // namespace

std::unique_ptr<AttentionKernel> map_output(std::unique_ptr<AttentionKernel> kernel, std::unique_ptr<OutputMap> map) {
  return std::make_unique<MappedKernel>(std::move(kernel), std::move(map));
}

}  // namespace lra
