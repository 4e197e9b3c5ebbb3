#include "lib/device/output_map.h"

#include <utility>

namespace lra::device {
namespace {

class Mapped final : public Attention {
 public:
  Mapped(std::unique_ptr<Attention> inner, std::unique_ptr<OutputMap> map, const AttentionShape& shape)
      : inner_(std::move(inner)), map_(std::move(map)), width_(int64_t{shape.heads} * shape.head_dim) {}

  // y, then what the attention saves.
  bool linear() const override { return inner_->linear(); }
  int64_t saved_floats(int64_t tokens) const override { return tokens * width_ + inner_->saved_floats(tokens); }

  void forward(Context c, const AttentionCall& call, Matrix out, float* saved) const override {
    const Scratch::Scope scope(c.scratch);
    const int64_t floats = out.rows * width_;
    const Matrix y(saved != nullptr ? saved : c.scratch.take<float>(floats), out.rows, width_);
    inner_->forward(c, of_inner(call), y, saved != nullptr ? saved + floats : nullptr);
    map_->forward(c, of_map(call), y, out);
  }

  void backward(Context c, const AttentionCall& call, const float* saved,
                const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    const int64_t rows = slopes.d_out.rows;
    const ConstMatrix y(saved, rows, width_);
    const Matrix dy = c.scratch.matrix(rows, width_), dv = c.scratch.matrix(rows, width_);
    c.device.fill_zero(dv);
    const size_t own = slopes.d_parameters.size() - static_cast<size_t>(map_->parameters());
    map_->backward(c, of_map(call), y, slopes.d_out, dy, dv, slopes.d_parameters.subspan(own));
    AttentionSlopes inner = slopes;
    inner.d_out = dy;
    inner.d_parameters = slopes.d_parameters.first(own);
    inner_->backward(c, of_inner(call), saved + rows * width_, inner);
    add(c, dv, slopes.dv);
  }

 private:
  size_t own(const AttentionCall& call) const {
    return call.parameters.size() - static_cast<size_t>(map_->parameters());
  }
  AttentionCall of_inner(AttentionCall call) const {
    call.parameters = call.parameters.first(own(call));
    return call;
  }
  AttentionCall of_map(AttentionCall call) const {
    call.parameters = call.parameters.subspan(own(call));
    return call;
  }

  std::unique_ptr<Attention> inner_;
  std::unique_ptr<OutputMap> map_;
  int64_t width_;
};

}  // namespace

std::unique_ptr<Attention> map_output(std::unique_ptr<Attention> attention, std::unique_ptr<OutputMap> map,
                                      const AttentionShape& shape) {
  return std::make_unique<Mapped>(std::move(attention), std::move(map), shape);
}

}  // namespace lra::device
