#include "lib/device/forget.h"

#include "lib/device/attention.h"

namespace lra::device {
namespace {

class ForgetRows final : public ScoreRows {
 public:
  ForgetRows(bool both, int64_t heads) : both_(both), heads_(heads), maps_(forget_maps(both)) {}

  int numbers() const override { return 0; }
  int64_t context_width() const override { return 1; }

  void prepare(Context c, const AttentionCall& call, float* context) const override {
    const Scratch::Scope scope(c.scratch);
    forget_sums(c, call.batch, heads_, logits(c, call).data, context);
  }
  void prepare_backward(Context c, const AttentionCall& call, const float*, float* d_context,
                        const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    const Matrix d_logits = c.scratch.matrix(call.x.rows, heads_);
    forget_sums_backward(c, call.batch, heads_, logits(c, call).data, d_context, d_logits.data);
    linear_backward(c, call.x, {call.parameters[0], heads_, call.x.cols}, d_logits, slopes.dx,
                    {slopes.d_parameters[0], heads_, call.x.cols}, slopes.d_parameters[1], Write::kAdd);
  }
  void forward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const override {
    maps_->forward(device, panel, parameters);
  }
  void backward(Device& device, const ScorePanel& panel, std::span<const float* const> parameters) const override {
    maps_->backward(device, panel, parameters);
  }
  void after_backward(Context c, const ScorePanel& panel) const override { add_forget_columns(c, panel, both_); }

 private:
  ConstMatrix logits(Context c, const AttentionCall& call) const {
    const Matrix logits = c.scratch.matrix(call.x.rows, heads_);
    linear_forward(c, call.x, {call.parameters[0], heads_, call.x.cols}, call.parameters[1], logits);
    return logits;
  }

  bool both_;
  int64_t heads_;
  std::unique_ptr<ScoreRows> maps_;
};

}  // namespace

std::unique_ptr<ScoreRows> forget_rows(bool both, int64_t heads) { return std::make_unique<ForgetRows>(both, heads); }

}  // namespace lra::device
