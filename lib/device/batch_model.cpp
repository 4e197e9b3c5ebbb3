// Encoder, head and update on a device. The mode of products holds for those of the head too.
#include "lib/device/batch_model.h"

#include <algorithm>

#include "lib/device/encoder.h"
#include "lib/util/check.h"

namespace lra {
namespace device {
namespace {

std::vector<std::unique_ptr<Attention>> attention_of(const ModelPlan& plan, ProductMode mode) {
  std::vector<std::unique_ptr<Attention>> all;
  for (const BlockPlan& block : plan.blocks) {
    all.push_back(make_attention(block.kernel->spec(), block.kernel->shape(), mode));
  }
  return all;
}

struct HeadState {
  ConstMatrix in;         // (B, parts * E)
  Matrix hidden, middle;  // (B, hidden), (B, hidden / 2) after ReLU; middle with pair_head "two" only
  Matrix logits;          // (B, classes)
};

class DeviceModel final : public BatchModel {
 public:
  DeviceModel(const ModelConfig& config, ProductMode mode, int number)
      : config_(config), plan_(config, layout_), attention_(attention_of(plan_, mode)), device_(mode, number) {
    for (Buffer<float>* buffer : {&parameters_, &evaluated_, &gradients_, &m_, &v_}) {
      *buffer = Buffer<float>(device_, layout_.size());
    }
    if (!plan_.sinusoidal.empty()) {
      sinusoidal_ = Buffer<float>(device_, std::ssize(plan_.sinusoidal));
      upload(sinusoidal_, plan_.sinusoidal);
    }
  }

  std::string device_name() const override { return device_.name(); }
  bool linear() const override { return !attention_.empty() && attention_.front()->linear(); }

  void load(std::span<const float> parameters, std::span<const float> m, std::span<const float> v) override {
    upload(parameters_, parameters);
    if (!m.empty()) upload(m_, m), upload(v_, v);
  }
  void store(std::span<float> parameters, std::span<float> m, std::span<float> v) const override {
    download(parameters, parameters_), download(m, m_), download(v, v_);
  }

  std::vector<ExampleResult> train(std::span<const Example> examples, float weight,
                                   const DropoutSource& first) override {
    const Scratch::Scope scope(scratch_);
    const Context on{device_, scratch_};
    const RaggedBatch batch = batch_of(examples, first.example, true);
    const EncoderContext encoder = context(batch, parameters_, true, first.key);
    const auto rows = std::ssize(examples);
    device_.fill_zero({gradients_.data(), 1, layout_.size()});
    const Matrix pooled = scratch_.matrix(batch.sequences, config_.dim);
    const EncoderState state = encode(encoder, pooled);
    const HeadState head = head_forward(encoder.parameters, pooled);
    const Matrix d_logits = scratch_.matrix(rows, config_.classes);
    std::vector<ExampleResult> results = results_of(examples, head.logits, weight, d_logits);
    const ConstMatrix d_in = head_backward(head, d_logits);
    ConstMatrix d_pooled(d_in.data, batch.sequences, config_.dim);
    if (combines()) {
      const Matrix d = scratch_.matrix(batch.sequences, config_.dim);
      combine_pair_backward(on, pooled, d_in, d);
      d_pooled = d;
    }
    encode_backward(encoder, state, d_pooled, gradients_.data());
    return results;
  }

  std::vector<float> gradients() const override {
    std::vector<float> values(static_cast<size_t>(layout_.size()));
    download(values, gradients_);
    return values;
  }
  double gradient_norm() const override { return l2_norm({device_, scratch_}, gradients_.data(), layout_.size()); }

  void update(const AdamWSettings& settings, int64_t step, float gradient_scale) override {
    const Context on{device_, scratch_};
    if (gradient_scale != 1.0f) scale(on, gradient_scale, gradients_.data(), layout_.size());
    for (const ParameterRange& range : layout_.trained_ranges()) {
      adamw_update(on, settings, step, range.size, parameters_.data() + range.begin, gradients_.data() + range.begin,
                   m_.data() + range.begin, v_.data() + range.begin);
    }
  }

  std::vector<ExampleResult> evaluate(std::span<const float> parameters, std::span<const Example> examples) override {
    const Scratch::Scope scope(scratch_);
    upload(evaluated_, parameters);
    const RaggedBatch batch = batch_of(examples, 0, false);
    const EncoderContext encoder = context(batch, evaluated_, false, {});
    const Matrix pooled = scratch_.matrix(batch.sequences, config_.dim);
    encode(encoder, pooled);
    return results_of(examples, head_forward(encoder.parameters, pooled).logits, 1.0f, {});
  }

 private:
  void upload(const Buffer<float>& to, std::span<const float> from) {
    check(std::ssize(from) == to.size(), "{} numbers for {}", from.size(), to.size());
    device_.upload(to.data(), from.data(), static_cast<int64_t>(from.size_bytes()));
  }
  void download(std::span<float> to, const Buffer<float>& from) const {
    check(std::ssize(to) == from.size(), "{} numbers of {}", to.size(), from.size());
    device_.download(to.data(), from.data(), static_cast<int64_t>(to.size_bytes()));
  }

  RaggedBatch batch_of(std::span<const Example> examples, uint32_t first, bool gradients) {
    for (const Example& example : examples) {
      check(example.label >= 0 && example.label < config_.classes, "label {} with {} classes", example.label,
            config_.classes);
    }
    return make_batch(examples,
                      {.vocabulary = static_cast<int32_t>(plan_.vocabulary),
                       .places = static_cast<int32_t>(plan_.places),
                       .pair = config_.pair,
                       .first_row = plan_.cls != kNoTensor,
                       .gradients = gradients},
                      first, scratch_);
  }
  EncoderContext context(const RaggedBatch& batch, const Buffer<float>& parameters, bool training,
                         std::array<uint32_t, 2> key) {
    const float* positions = sinusoidal_.size() > 0 ? sinusoidal_.data() : parameters.data() + plan_.position;
    return {.config = config_,
            .plan = plan_,
            .attention = attention_,
            .parameters = parameters.data(),
            .positions = {positions, plan_.places, plan_.dim},
            .on = {device_, scratch_},
            .batch = batch,
            .training = training,
            .dropout_key = key};
  }

  // Whether the head reads x, y, x y and x - y.
  bool combines() const { return plan_.head_in.in == 4 * plan_.dim && config_.pair; }

  HeadState head_forward(const float* parameters, ConstMatrix pooled) {
    const Context on{device_, scratch_};
    const int64_t rows = config_.pair ? pooled.rows / 2 : pooled.rows;
    const auto layer = [&](const LinearPlan& linear, ConstMatrix x) {
      const Matrix y = scratch_.matrix(rows, linear.out);
      linear_forward(on, x, linear.weight_of(parameters), linear.bias_of(parameters), y);
      return y;
    };
    HeadState s;
    s.in = {pooled.data, rows, plan_.head_in.in};
    if (combines()) {
      const Matrix in = scratch_.matrix(rows, plan_.head_in.in);
      combine_pair(on, pooled, in);
      s.in = in;
    }
    s.hidden = layer(plan_.head_in, s.in);
    relu_forward(on, s.hidden);
    if (plan_.head_mid.exists()) {
      s.middle = layer(plan_.head_mid, s.hidden);
      relu_forward(on, s.middle);
    }
    s.logits = layer(plan_.head_out, plan_.head_mid.exists() ? s.middle : s.hidden);
    return s;
  }

  // Returns the gradient of s.in.
  Matrix head_backward(const HeadState& s, ConstMatrix d_logits) {
    const Context on{device_, scratch_};
    const auto layer = [&](const LinearPlan& linear, ConstMatrix x, ConstMatrix dy) {
      const Matrix dx = scratch_.matrix(dy.rows, linear.in);
      linear_backward(on, x, linear.weight_of(static_cast<const float*>(parameters_.data())), dy, dx,
                      linear.weight_of(gradients_.data()), linear.bias_of(gradients_.data()));
      return dx;
    };
    Matrix d = layer(plan_.head_out, plan_.head_mid.exists() ? s.middle : s.hidden, d_logits);
    if (plan_.head_mid.exists()) {
      relu_backward(on, s.middle, d);
      d = layer(plan_.head_mid, s.hidden, d);
    }
    relu_backward(on, s.hidden, d);
    return layer(plan_.head_in, s.in, d);
  }

  std::vector<ExampleResult> results_of(std::span<const Example> examples, ConstMatrix logits, float weight,
                                        Matrix d_logits) {
    std::vector<int32_t> labels;
    for (const Example& example : examples) labels.push_back(example.label);
    std::vector<double> losses(labels.size());
    std::vector<float> values(static_cast<size_t>(logits.rows * logits.cols));
    double* device_losses = scratch_.take<double>(logits.rows);
    cross_entropy({device_, scratch_}, logits, scratch_.upload(std::span<const int32_t>(labels)), weight, device_losses,
                  d_logits);
    device_.download(losses.data(), device_losses, logits.rows * int64_t{sizeof(double)});
    device_.download(values.data(), logits.data, std::ssize(values) * int64_t{sizeof(float)});
    std::vector<ExampleResult> results(labels.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(i) * logits.cols;
      results[i].loss = losses[i];
      results[i].logits.assign(row, row + logits.cols);
      results[i].predicted = static_cast<int>(std::max_element(row, row + logits.cols) - row);
    }
    return results;
  }

  ModelConfig config_;
  ParameterLayout layout_;
  ModelPlan plan_;
  std::vector<std::unique_ptr<Attention>> attention_;  // before the device: what is no kernel's is said first
  mutable Device device_;
  mutable Scratch scratch_{device_};
  Buffer<float> parameters_, evaluated_, gradients_, m_, v_, sinusoidal_;
};

}  // namespace
}  // namespace device

std::unique_ptr<BatchModel> make_batch_model(const ModelConfig& config, std::string_view precision, int number) {
  using device::ProductMode;
  config.validate();
  const ProductMode mode = precision == "tf32"       ? ProductMode::kTf32
                           : precision == "bfloat16" ? ProductMode::kBfloat16
                                                     : ProductMode::kFloat32;
  return std::make_unique<device::DeviceModel>(config, mode, number);
}

}  // namespace lra
