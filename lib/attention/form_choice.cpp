#include "lib/attention/form_choice.h"

#include <fmt/format.h>

namespace lra {
namespace {

class ChosenForm final : public AttentionKernel {
 public:
  ChosenForm(std::unique_ptr<AttentionKernel> quadratic, std::unique_ptr<AttentionKernel> linear, int64_t above)
      : AttentionKernel(quadratic->shape(), quadratic->spec()),
        quadratic_(std::move(quadratic)),
        linear_(std::move(linear)),
        above_(above) {}

  const std::vector<KernelParameter>& parameters() const override { return quadratic_->parameters(); }
  int64_t saved_floats(int64_t tokens, float dropout) const override {
    return chosen(tokens, dropout).saved_floats(tokens, dropout);
  }
  void forward(const AttentionInput& in, Matrix out, float* saved, Arena& arena) const override {
    chosen(in.q.rows, in.dropout).forward(in, out, saved, arena);
  }
  // Score gradients exist in the quadratic form alone, which computes the same.
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
  int64_t above_;
};

}  // namespace

std::unique_ptr<AttentionKernel> choose_form(std::unique_ptr<AttentionKernel> quadratic,
                                             std::unique_ptr<AttentionKernel> linear, int64_t above) {
  return std::make_unique<ChosenForm>(std::move(quadratic), std::move(linear), above);
}

}  // namespace lra
