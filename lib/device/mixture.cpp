#include "lib/device/mixture.h"

#include "lib/device/attention.h"

namespace lra::device {
namespace {

class MixtureRows final : public ScoreRows {
 public:
  MixtureRows(int components, const AttentionShape& shape)
      : components_(components), heads_(shape.heads), d_(shape.head_dim), maps_(mixture_maps(components)) {}

  int numbers() const override { return maps_->numbers(); }
  int64_t context_width() const override { return components_; }

  void prepare(Context c, const AttentionCall& call, float* context) const override {
    c.device.multiply(logits(call, context));
    mixture_weights(c, call.q.rows * heads_, components_, context);
  }
  void prepare_backward(Context c, const AttentionCall& call, const float* context, float* d_context,
                        const AttentionSlopes& slopes) const override {
    mixture_weights_backward(c, call.q.rows * heads_, components_, context, d_context);
    const ConstMatrix d(d_context, call.q.rows, components_, heads_ * components_);
    const ConstMatrix w(call.parameters[0], components_, d_), q = call.q.col_block(0, d_);
    Product to_q = product(d, Transpose::kNo, w, Transpose::kNo, slopes.dq.col_block(0, d_), 1.0f, 1.0f);
    to_q.count = heads_, to_q.a_next = components_, to_q.b_next = components_ * d_, to_q.c_next = d_;
    c.device.multiply(to_q);
    Product to_w =
        product(d, Transpose::kYes, q, Transpose::kNo, {slopes.d_parameters[0], components_, d_}, 1.0f, 1.0f);
    to_w.count = heads_, to_w.a_next = components_, to_w.b_next = d_, to_w.c_next = components_ * d_;
    c.device.multiply(to_w);
  }
  void forward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const override {
    maps_->forward(device, panel, parameters);
  }
  void backward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const override {
    maps_->backward(device, panel, parameters);
  }
  void add_numbers(Context c, const ScorePanel& panel, std::span<float* const> d_parameters) const override {
    for (int i = 0; i < components_; ++i) {
      add_row_numbers(c, panel, i, numbers(), d_parameters[1] + i, components_);
    }
  }

 private:
  // u (tokens, H, K) = q W a head.
  Product logits(const AttentionCall& call, float* context) const {
    Product p = product(call.q.col_block(0, d_), Transpose::kNo, {call.parameters[0], components_, d_}, Transpose::kYes,
                        {context, call.q.rows, components_, heads_ * components_});
    p.count = heads_, p.a_next = d_, p.b_next = components_ * d_, p.c_next = components_;
    return p;
  }

  int components_;
  int64_t heads_, d_;
  std::unique_ptr<ScoreRows> maps_;
};

}  // namespace

std::unique_ptr<ScoreRows> mixture_rows(int components, const AttentionShape& shape) {
  return std::make_unique<MixtureRows>(components, shape);
}

}  // namespace lra::device
