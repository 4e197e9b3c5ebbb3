// The maps themselves, over their kernels.
#include "lib/device/output_map.h"
#include "lib/device/output_map_kernels.h"

namespace lra::device {
namespace {

class ExcludeSelf final : public OutputMap {
 public:
  explicit ExcludeSelf(const AttentionShape& shape) : heads_(shape.heads) {}
  int parameters() const override { return 0; }
  void forward(Context c, const AttentionCall& call, ConstMatrix y, Matrix out) const override {
    exclude_self_forward(c, heads_, call.v, y, out);
  }
  void backward(Context c, const AttentionCall& call, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix dv,
                std::span<float* const>) const override {
    exclude_self_backward(c, heads_, call.v, y, d_out, dy, dv);
  }

 private:
  int64_t heads_;
};

class RmsGate final : public OutputMap {
 public:
  explicit RmsGate(bool gate) : gate_(gate) {}
  int parameters() const override { return gate_ ? 2 : 1; }
  void forward(Context c, const AttentionCall& call, ConstMatrix y, Matrix out) const override {
    rms_gate_forward(c, call.parameters[0], gate_ ? call.parameters[1] : nullptr, y, out);
  }
  void backward(Context c, const AttentionCall& call, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix,
                std::span<float* const> d_parameters) const override {
    const Scratch::Scope scope(c.scratch);
    const Matrix d_gain = c.scratch.matrix(y.rows, y.cols);
    const Matrix d_gate = gate_ ? c.scratch.matrix(y.rows, y.cols) : Matrix();
    rms_gate_backward(c, call.parameters[0], gate_ ? call.parameters[1] : nullptr, y, d_out, dy, d_gain, d_gate);
    if (d_parameters[0] != nullptr) add_column_sums(c, d_gain, d_parameters[0]);
    if (gate_ && d_parameters[1] != nullptr) add_column_sums(c, d_gate, d_parameters[1]);
  }

 private:
  bool gate_;
};

class NormGelu final : public OutputMap {
 public:
  static constexpr float kEpsilon = 1e-5f;

  int parameters() const override { return 2; }
  void forward(Context c, const AttentionCall& call, ConstMatrix y, Matrix out) const override {
    const Scratch::Scope scope(c.scratch);
    float *mean = c.scratch.take<float>(y.rows), *rstd = c.scratch.take<float>(y.rows);
    layer_norm_forward(c, y, call.parameters[0], call.parameters[1], kEpsilon, out, mean, rstd);
    gelu_dropout_forward(c, Gelu::kExact, {call.batch}, out, out);
  }
  void backward(Context c, const AttentionCall& call, ConstMatrix y, ConstMatrix d_out, Matrix dy, Matrix,
                std::span<float* const> d_parameters) const override {
    const Scratch::Scope scope(c.scratch);
    float *mean = c.scratch.take<float>(y.rows), *rstd = c.scratch.take<float>(y.rows);
    const Matrix normed = c.scratch.matrix(y.rows, y.cols), unused = c.scratch.matrix(2, y.cols);
    layer_norm_forward(c, y, call.parameters[0], call.parameters[1], kEpsilon, normed, mean, rstd);
    gelu_dropout_backward(c, Gelu::kExact, {call.batch}, normed, d_out, normed);
    c.device.fill_zero(dy);
    c.device.fill_zero(unused);
    layer_norm_backward(c, y, call.parameters[0], mean, rstd, normed, dy,
                        d_parameters[0] != nullptr ? d_parameters[0] : unused.row(0),
                        d_parameters[1] != nullptr ? d_parameters[1] : unused.row(1));
  }
};

}  // namespace

std::unique_ptr<OutputMap> exclude_self(const AttentionShape& shape) { return std::make_unique<ExcludeSelf>(shape); }
std::unique_ptr<OutputMap> rms_gate(bool gate) { return std::make_unique<RmsGate>(gate); }
std::unique_ptr<OutputMap> norm_gelu() { return std::make_unique<NormGelu>(); }

}  // namespace lra::device
