#include "lib/attention/form_choice.h"

#include <fmt/format.h>

namespace lra {
namespace {

class ChosenForm final : public AttentionKernel {
 public:
  ChosenForm(std::unique_ptr<AttentionKernel> quadratic, std::unique_ptr<AttentionKernel> linear)
      : AttentionKernel(quadratic->shape(), quadratic->spec()),
        quadratic_(std::move(quadratic)),
        linear_(std::move(linear)) {
    const auto operations = [&](const AttentionKernel& kernel) { return kernel.flops(above_ + 1, false, 0.0f); };
    while (operations(*linear_) >= operations(*quadratic_)) ++above_;
  }

  const std::vector<KernelParameter>& parameters() const override { return quadratic_->parameters(); }
  int64_t saved_floats(int64_t tokens, float dropout) const override {
    return chosen(tokens, dropout).saved_floats(tokens, dropout);
  }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override {
    chosen(in.q.rows, in.dropout).forward(in, out, saved, arena);
  }
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override {
    chosen(in.q.rows, in.dropout).backward(in, out, saved, gradients, arena);
  }
  double flops(int64_t tokens, bool training, float dropout) const override {
    return chosen(tokens, dropout).flops(tokens, training, dropout);
  }
  bool has_weights() const override { return true; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override {
    quadratic_->visit_weights(in, arena, visit);
  }
  std::string form(bool, float dropout) const override {
    return dropout > 0.0f ? "quadratic" : fmt::format("linear above {} tokens", above_);
  }

 private:
  // With the backward pass the forms break even a little earlier, but saved_floats and backward have to find what
  // forward chose, and know tokens and dropout alone.
  const AttentionKernel& chosen(int64_t tokens, float dropout) const {
    return dropout > 0.0f || tokens <= above_ ? *quadratic_ : *linear_;
  }

  std::unique_ptr<AttentionKernel> quadratic_, linear_;
  int64_t above_ = 0;
};

// Score gradients of a linear form, which has no scores: the quadratic one runs once more beside it, and all but its
// squares is dropped.
void add_score_gradients(const AttentionKernel& quadratic, const AttentionInput& in,
                         const AttentionGradients& gradients, Arena& arena) {
  const Arena::Scope scope(arena);
  const int64_t n = in.q.rows, width = in.q.cols;
  const Matrix out = arena.matrix(n, width);
  float* saved = arena.floats(quadratic.saved_floats(n, in.dropout));
  quadratic.forward(in, out, saved, arena);
  std::vector<float*> d_parameters(quadratic.parameters().size(), nullptr);
  AttentionGradients squares;
  squares.d_out = gradients.d_out;
  squares.dq = arena.matrix(n, width), squares.dk = arena.matrix(n, width), squares.dv = arena.matrix(n, width);
  squares.d_parameters = d_parameters;
  squares.score_gradient_squares = gradients.score_gradient_squares;
  quadratic.backward(in, out, saved, squares, arena);
}

class LinearWithWeights final : public AttentionKernel {
 public:
  LinearWithWeights(std::unique_ptr<AttentionKernel> quadratic, std::unique_ptr<AttentionKernel> linear)
      : AttentionKernel(quadratic->shape(), quadratic->spec()),
        quadratic_(std::move(quadratic)),
        linear_(std::move(linear)) {}

  const std::vector<KernelParameter>& parameters() const override { return linear_->parameters(); }
  int64_t saved_floats(int64_t tokens, float dropout) const override { return linear_->saved_floats(tokens, dropout); }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override {
    linear_->forward(in, out, saved, arena);
  }
  void backward(const AttentionInput& in, ConstMatrix out, const float* saved, const AttentionGradients& gradients,
                Arena& arena) const override {
    if (gradients.score_gradient_squares != nullptr) add_score_gradients(*quadratic_, in, gradients, arena);
    linear_->backward(in, out, saved, gradients, arena);
  }
  double flops(int64_t tokens, bool training, float dropout) const override {
    return linear_->flops(tokens, training, dropout);
  }
  bool dropout_applies() const override { return linear_->dropout_applies(); }
  bool has_weights() const override { return true; }
  void visit_weights(const AttentionInput& in, Arena& arena,
                     const std::function<void(const WeightRow&)>& visit) const override {
    quadratic_->visit_weights(in, arena, visit);
  }
  std::string form(bool training, float dropout) const override { return linear_->form(training, dropout); }

 private:
  std::unique_ptr<AttentionKernel> quadratic_, linear_;
};

}  // namespace

std::unique_ptr<AttentionKernel> with_weights_of(std::unique_ptr<AttentionKernel> quadratic,
                                                 std::unique_ptr<AttentionKernel> linear) {
  return std::make_unique<LinearWithWeights>(std::move(quadratic), std::move(linear));
}

std::unique_ptr<AttentionKernel> choose_form(std::unique_ptr<AttentionKernel> quadratic,
                                             std::unique_ptr<AttentionKernel> linear) {
  return std::make_unique<ChosenForm>(std::move(quadratic), std::move(linear));
}

}  // namespace lra
