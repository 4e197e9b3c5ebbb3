#include <utility>

#include "lib/device/convolution.h"
#include "lib/device/feature_map.h"
#include "lib/device/gelu.h"
#include "lib/device/inline.h"

namespace lra::device {
namespace {

enum class Feature { kIdentity, kRelu, kLeakyRelu, kExp };

LRA_KERNEL float value_of(Feature feature, float x) {
  if (feature == Feature::kExp) return std::exp(x);
  return x >= 0.0f ? x : feature == Feature::kRelu ? 0.0f : 0.01f * x;
}
LRA_KERNEL float slope_of(Feature feature, float x) {
  if (feature == Feature::kExp) return std::exp(x);
  return x > 0.0f ? 1.0f : feature == Feature::kRelu ? 0.0f : 0.01f;
}

void map_forward(Context c, Feature feature, ConstMatrix x, Matrix y) {
  launch_each(c.device, y.rows * y.cols,
              [=] LRA_KERNEL(int64_t i) { y.data[i] = value_of(feature, x.data[i / y.cols * x.stride + i % y.cols]); });
}
// dx becomes what it is with respect to x, in place.
void map_backward(Context c, Feature feature, ConstMatrix x, Matrix dx) {
  launch_each(c.device, x.rows * x.cols, [=] LRA_KERNEL(int64_t i) {
    dx.data[i / x.cols * dx.stride + i % x.cols] *= slope_of(feature, x.data[i / x.cols * x.stride + i % x.cols]);
  });
}

class InputMap final : public Attention {
 public:
  InputMap(std::unique_ptr<Attention> inner, Feature feature) : inner_(std::move(inner)), feature_(feature) {}

  bool linear() const override { return inner_->linear(); }
  int64_t saved_floats(int64_t tokens) const override { return inner_->saved_floats(tokens); }
  void forward(Context c, const AttentionCall& call, Matrix out, float* saved) const override {
    const Scratch::Scope scope(c.scratch);
    inner_->forward(c, mapped(c, call), out, saved);
  }
  void backward(Context c, const AttentionCall& call, const float* saved,
                const AttentionSlopes& slopes) const override {
    const Scratch::Scope scope(c.scratch);
    inner_->backward(c, mapped(c, call), saved, slopes);
    map_backward(c, feature_, call.q, slopes.dq);
    map_backward(c, feature_, call.k, slopes.dk);
  }

 private:
  AttentionCall mapped(Context c, AttentionCall call) const {
    const Matrix q = c.scratch.matrix(call.q.rows, call.q.cols), k = c.scratch.matrix(call.k.rows, call.k.cols);
    map_forward(c, feature_, call.q, q);
    map_forward(c, feature_, call.k, k);
    call.q = q, call.k = k;
    return call;
  }

  std::unique_ptr<Attention> inner_;
  Feature feature_;
};

// y (rows, C) += bias (C).
void add_bias(Context c, const float* bias, Matrix y) {
  launch_each(c.device, y.rows * y.cols, [=] LRA_KERNEL(int64_t i) { y.data[i] += bias[i % y.cols]; });
}
void gelu_rows(Context c, ConstMatrix x, Matrix y) {
  launch_each(c.device, y.rows * y.cols, [=] LRA_KERNEL(int64_t i) { y.data[i] = gelu(Gelu::kExact, x.data[i]); });
}
// d becomes the gradient of x.
void gelu_rows_backward(Context c, ConstMatrix x, Matrix d) {
  launch_each(c.device, d.rows * d.cols,
              [=] LRA_KERNEL(int64_t i) { d.data[i] *= gelu_slope(Gelu::kExact, x.data[i]); });
}

// y = W x + b in groups of a head: W (H groups of `outs` rows, D), x (rows, H*D), y (rows, H*outs).
struct GroupedMap {
  int64_t heads, d, outs;
  const float *weight, *bias;

  void forward(Context c, ConstMatrix x, Matrix y) const {
    c.device.multiply(by_head(heads, x, d, {weight, outs, d}, Transpose::kYes, outs * d, y, outs));
    add_bias(c, bias, y);
  }
  // dx is overwritten, d_weight and d_bias are added to unless null.
  void backward(Context c, ConstMatrix x, ConstMatrix dy, Matrix dx, float* d_weight, float* d_bias) const {
    c.device.multiply(by_head(heads, dy, outs, {weight, outs, d}, Transpose::kNo, outs * d, dx, d));
    if (d_bias != nullptr) add_column_sums(c, dy, d_bias);
    if (d_weight == nullptr) return;
    Product p = product(dy.col_block(0, outs), Transpose::kYes, x.col_block(0, d), Transpose::kNo, {d_weight, outs, d},
                        1.0f, 1.0f);
    p.count = heads, p.a_next = outs, p.b_next = d, p.c_next = outs * d;
    c.device.multiply(p);
  }
};

class LocalMix final : public Attention {
 public:
  LocalMix(std::unique_ptr<Attention> inner, const AttentionShape& shape, int width, size_t before)
      : inner_(std::move(inner)),
        heads_(shape.heads),
        d_(shape.head_dim),
        width_(width),
        taps_(width == 0 ? 3 : 9),
        before_(before) {}

  bool linear() const override { return inner_->linear(); }
  int64_t saved_floats(int64_t tokens) const override { return inner_->saved_floats(tokens); }
  void forward(Context c, const AttentionCall& call, Matrix out, float* saved) const override {
    inner_->forward(c, of_inner(call), out, saved);
    const Scratch::Scope scope(c.scratch);
    add_convolution(c, call.batch, place_taps(made(c, call).taps), false, call.v, out);
  }
  void backward(Context c, const AttentionCall& call, const float* saved,
                const AttentionSlopes& slopes) const override {
    AttentionSlopes of_inner_slopes = slopes;
    of_inner_slopes.d_parameters = slopes.d_parameters.first(before_);
    inner_->backward(c, of_inner(call), saved, of_inner_slopes);
    const Scratch::Scope scope(c.scratch);
    const Made m = made(c, call);
    const Matrix d_taps = c.scratch.matrix(m.taps.rows, m.taps.cols);
    const Matrix d_hidden = c.scratch.matrix(m.mean.rows, m.mean.cols),
                 d_mean = c.scratch.matrix(m.mean.rows, m.mean.cols);
    add_convolution(c, call.batch, place_taps(m.taps), true, slopes.d_out, slopes.dv);
    convolution_gradients(c, call.batch, place_taps(m.taps), call.v, slopes.d_out, d_taps);
    const auto d_tensor = [&](Tensor which) { return slopes.d_parameters[before_ + which]; };
    out_map(call).backward(c, m.activated, d_taps, d_hidden, d_tensor(kOutWeight), d_tensor(kOutBias));
    gelu_rows_backward(c, m.hidden, d_hidden);
    in_map(call).backward(c, m.mean, d_hidden, d_mean, d_tensor(kInWeight), d_tensor(kInBias));
    const Matrix dx = c.scratch.matrix(call.x.rows, call.x.cols);
    pool_backward(c, call.batch, kMean, d_mean, dx);
    add(c, dx, slopes.dx);
  }

 private:
  enum Tensor : size_t { kInWeight, kInBias, kOutWeight, kOutBias };
  static constexpr Pooling kMean = {false, 0.0f};

  // What a sequence's taps are made by; those of a column lie side by side.
  struct Made {
    Matrix mean, hidden, activated;  // (sequences, E)
    Matrix taps;                     // (sequences, E * taps)
  };
  Made made(Context c, const AttentionCall& call) const {
    const int64_t sequences = call.batch.sequences, e = call.x.cols;
    const Made m = {c.scratch.matrix(sequences, e), c.scratch.matrix(sequences, e), c.scratch.matrix(sequences, e),
                    c.scratch.matrix(sequences, e * taps_)};
    pool_forward(c, call.batch, kMean, call.x, m.mean);
    in_map(call).forward(c, m.mean, m.hidden);
    gelu_rows(c, m.hidden, m.activated);
    out_map(call).forward(c, m.activated, m.taps);
    return m;
  }
  GroupedMap in_map(const AttentionCall& call) const {
    return {heads_, d_, d_, call.parameters[before_ + kInWeight], call.parameters[before_ + kInBias]};
  }
  GroupedMap out_map(const AttentionCall& call) const {
    return {heads_, d_, d_ * taps_, call.parameters[before_ + kOutWeight], call.parameters[before_ + kOutBias]};
  }
  PlaceTaps place_taps(ConstMatrix taps) const {
    return {.taps = taps_, .width = width_, .weight = taps.data, .next = taps.cols};
  }
  AttentionCall of_inner(AttentionCall call) const {
    call.parameters = call.parameters.first(before_);
    return call;
  }

  std::unique_ptr<Attention> inner_;
  int64_t heads_, d_, width_, taps_;
  size_t before_;
};

}  // namespace

std::unique_ptr<Attention> map_inputs(std::unique_ptr<Attention> attention, const std::string& features) {
  if (features == "identity") return attention;
  const Feature feature = features == "relu"         ? Feature::kRelu
                          : features == "leaky-relu" ? Feature::kLeakyRelu
                                                     : Feature::kExp;
  return std::make_unique<InputMap>(std::move(attention), feature);
}

std::unique_ptr<Attention> add_local_mix(std::unique_ptr<Attention> attention, const AttentionShape& shape, int width,
                                         size_t before) {
  return std::make_unique<LocalMix>(std::move(attention), shape, width, before);
}

}  // namespace lra::device
