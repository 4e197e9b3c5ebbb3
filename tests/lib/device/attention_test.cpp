// Attention on a ragged batch against the families' references in double and their central differences: the problem
// stands between other sequences, so that whatever runs over an edge shows.
#include "lib/device/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lib/device/families.h"
#include "lib/device/feature_map.h"
#include "lib/device/fused.h"
#include "lib/device/panels.h"
#include "lib/util/check.h"
#include "tests/lib/attention/against_reference.h"
#include "tests/lib/device/on_device.h"
#include "tests/support/sanitized.h"

namespace lra {
namespace {

// A kernel of lib/attention whose work a device does: sequences of 7, 0, N and 2 tokens, of which the third counts.
class OnDeviceKernel final : public AttentionKernel {
 public:
  OnDeviceKernel(const AttentionShape& shape, const AttentionSpec& spec, device::ProductMode mode)
      : AttentionKernel(shape, spec),
        cpu_(make_attention(spec, shape)),
        attention_(device::make_attention(spec, shape, mode)) {}

  const std::vector<KernelParameter>& parameters() const override { return cpu_->parameters(); }
  int64_t saved_floats(int64_t tokens, float) const override { return attention_->saved_floats(tokens + kOthers); }
  bool dropout_applies() const override { return cpu_->dropout_applies(); }

  void forward(const AttentionInput& in, Matrix out, float* saved, Arena&) const override {
    Work work(*this, in);
    const Matrix y = work.on.scratch.matrix(work.batch.tokens, out.cols);
    const int64_t floats = attention_->saved_floats(work.batch.tokens);
    float* kept = saved == nullptr ? nullptr : work.on.scratch.take<float>(floats);
    attention_->forward(work.on.context, work.call(), y, kept);
    work.download(y, out);
    if (saved != nullptr) work.on.device.download(saved, kept, floats * int64_t{sizeof(float)});
  }
  void backward(const AttentionInput& in, ConstMatrix, const float* saved, const AttentionGradients& gradients,
                Arena&) const override {
    Work work(*this, in);
    const int64_t rows = work.batch.tokens, width = gradients.d_out.cols;
    device::AttentionSlopes slopes;
    slopes.d_out = work.upload(gradients.d_out);
    const Matrix d = work.on.scratch.matrix(rows, 3 * width);
    slopes.dq = d.col_block(0, width), slopes.dk = d.col_block(width, width), slopes.dv = d.col_block(2 * width, width);
    slopes.dx = work.on.scratch.matrix(rows, in.x.cols);
    work.on.device.fill_zero(slopes.dx);
    // The other sequences' d_out is 0: what they give to parameters is 0 too.
    std::vector<float*> d_parameters;
    for (size_t i = 0; i < parameters().size(); ++i) {
      std::vector<float> zeros(static_cast<size_t>(parameters()[i].size()));
      d_parameters.push_back(gradients.d_parameters[i] == nullptr ? nullptr : work.on.upload(zeros));
    }
    slopes.d_parameters = d_parameters;
    const std::vector<float> kept(saved, saved + attention_->saved_floats(rows));
    attention_->backward(work.on.context, work.call(), work.on.upload(kept), slopes);
    work.download(slopes.dq, gradients.dq), work.download(slopes.dk, gradients.dk);
    work.download(slopes.dv, gradients.dv);
    const std::vector<float> dx = work.on.download(slopes.dx.row_block(work.first(), in.x.rows));
    for (int64_t i = 0; i < in.x.rows * in.x.cols; ++i) gradients.dx.row(i / in.x.cols)[i % in.x.cols] += dx[i];
    for (size_t i = 0; i < d_parameters.size(); ++i) {
      if (d_parameters[i] == nullptr) continue;
      const std::vector<float> values = work.on.download(d_parameters[i], parameters()[i].size());
      for (size_t e = 0; e < values.size(); ++e) gradients.d_parameters[i][e] += values[e];
    }
  }
  double flops(int64_t, bool, float) const override { return 0.0; }
  std::string form(bool, float) const override { return "quadratic"; }
  bool has_weights() const override { return false; }
  void visit_weights(const AttentionInput&, Arena&, const std::function<void(const WeightRow&)>&) const override {}

 private:
  static constexpr int64_t kOthers = 7 + 2;

  struct Work {
    const AttentionInput& in;
    OnDevice on;
    device::RaggedBatch batch;
    Matrix inputs;
    std::vector<const float*> parameters;

    Work(const OnDeviceKernel& kernel, const AttentionInput& input) : in(input) {
      std::vector<Example> examples = examples_of({7, 0, in.q.rows, 2}, 20);
      examples[2].first.places.assign(in.places.begin(), in.places.end());
      batch =
          device::make_batch(examples, {.vocabulary = 20, .places = kernel.shape().padded_length, .gradients = true},
                             in.example - 2, on.scratch);
      std::vector<float> values;
      const auto others = random_normal<float>(batch.tokens * (3 * in.q.cols + in.x.cols), 99);
      for (int64_t i = 0; i < batch.tokens; ++i) {
        const int64_t row = i - first();
        if (row < 0 || row >= in.q.rows) {
          const int64_t width = 3 * in.q.cols + in.x.cols;
          values.insert(values.end(), others.begin() + i * width, others.begin() + (i + 1) * width);
          continue;
        }
        for (const ConstMatrix m : {in.q, in.k, in.v, in.x})
          values.insert(values.end(), m.row(row), m.row(row) + m.cols);
      }
      inputs = on.upload(values, batch.tokens, 3 * in.q.cols + in.x.cols);
      for (size_t i = 0; i < in.parameters.size(); ++i) {
        const int64_t size = kernel.parameters()[i].size();
        parameters.push_back(on.upload(std::vector<float>(in.parameters[i], in.parameters[i] + size)));
      }
    }
    int64_t first() const { return batch.first[2]; }
    device::AttentionCall call() const {
      const int64_t width = in.q.cols;
      return {.batch = batch,
              .q = inputs.col_block(0, width),
              .k = inputs.col_block(width, width),
              .v = inputs.col_block(2 * width, width),
              .x = inputs.col_block(3 * width, in.x.cols),
              .parameters = parameters,
              .training = in.training,
              .dropout = in.dropout,
              .dropout_key = in.dropout_key,
              .layer = in.layer};
    }
    Matrix upload(ConstMatrix x) {
      const Matrix all = on.scratch.matrix(batch.tokens, x.cols);
      on.device.fill_zero(all);
      for (int64_t i = 0; i < x.rows; ++i) {
        on.device.upload(all.row(first() + i), x.row(i), x.cols * int64_t{sizeof(float)});
      }
      return all;
    }
    void download(ConstMatrix x, Matrix to) {
      const std::vector<float> values = on.download(x.row_block(first(), to.rows));
      for (int64_t i = 0; i < to.rows; ++i) std::copy_n(values.data() + i * to.cols, to.cols, to.row(i));
    }
  };

  std::unique_ptr<AttentionKernel> cpu_;
  std::unique_ptr<device::Attention> attention_;
};

// Has no kernel, and is refused.
bool causal_centred(const std::string& text) {
  const AttentionSpec spec = parse_attention(text);
  return spec.name != "polynomial" && text.find("form=linear") != std::string::npos && spec.flag("causal");
}

std::vector<std::string> specs() {
  std::vector<std::string> all;
  for (const AttentionFamily& family : attention_families()) {
    std::ranges::remove_copy_if(family.examples, std::back_inserter(all), causal_centred);
  }
  return all;
}

Problem problem(const std::string& spec, int64_t n, int heads, int head_dim, float dropout,
                device::ProductMode mode = device::ProductMode::kFloat32) {
  Problem p(spec, n, heads, head_dim, dropout);
  p.kernel = std::make_unique<OnDeviceKernel>(p.shape, p.spec, mode);
  return p;
}

class DeviceAttention : public testing::TestWithParam<std::string> {};

TEST_P(DeviceAttention, AgreesWithReference) {
  const std::string& spec = GetParam();
  const int directions = kSanitized ? 0 : 2;
  const Problem single = problem(spec, 1, 2, 5, 0.0f);
  // One token without its own value has nothing that a norm could divide.
  if (!single.spec.xsa) expect_reference(single, directions, kSanitized ? 0 : 20, "device");
  expect_reference(problem(spec, 15, 2, 3, 0.0f), directions, kSanitized ? 0 : 60, "device");
  expect_reference(problem(spec, 67, 1, 32, 0.3f), directions, 0, "device");
  if (kSanitized) return;
  // More queries than a panel has.
  const auto family = std::ranges::find(attention_families(), single.spec.name, &AttentionFamily::name);
  if (!family->slow_reference) expect_reference(problem(spec, 300, 2, 4, 0.2f), 1, 0, "device");
  Problem evaluation = problem(spec, 40, 2, 8, 0.0f);
  evaluation.training = false;
  expect_reference(evaluation, 0, 0, "device");
}

INSTANTIATE_TEST_SUITE_P(Families, DeviceAttention, testing::ValuesIn(specs()), [](const auto& info) {
  std::string name = parse_attention(info.param).slug();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

// Softmax and what depends on one score each have a kernel of their own in bfloat16: several tiles of queries and keys,
// one, a single token, a width that is no whole tile.
TEST(DeviceAttention, FusedKernelsAgreeWithReference) {
  for (const std::string spec :
       {"softmax", "softmax:causal=1", "softmax+xsa", "polynomial:power=3,scale=16", "polynomial:power=2,scale=sqrt",
        "polynomial:power=1,scale=n,causal=1", "sigmoid", "sigmoid:causal=1", "sigmoid-sqrt-n", "sigmoid-n", "relu-n",
        "relu-n:power=2", "rela"}) {
    SCOPED_TRACE(spec);
    const auto fused = [&](int64_t n, int heads, int head_dim, float dropout) {
      Problem p = problem(spec, n, heads, head_dim, dropout, device::ProductMode::kBfloat16);
      p.precision = Precision::kBfloat16;
      return p;
    };
    if (!spec.ends_with("xsa")) expect_reference(fused(1, 2, 5, 0.0f), 0, 0, "device");
    expect_reference(fused(15, 2, 16, 0.0f), 1, 0, "device");
    expect_reference(fused(67, 1, 32, 0.3f), 1, 0, "device");
    expect_reference(fused(40, 1, 64, 0.1f), 0, 0, "device");
    if (!kSanitized) expect_reference(fused(300, 2, 8, 0.2f), 1, 0, "device");
  }
}

// Everything that an attention gives for a ragged batch.
std::vector<std::vector<float>> results(const device::Attention& attention, const AttentionShape& shape,
                                        float dropout) {
  OnDevice on;
  const device::RaggedBatch batch = device::make_batch(
      examples_of({7, 0, 33, 2, 40, 0}, 20), {.vocabulary = 20, .places = shape.padded_length}, 3, on.scratch);
  const auto values = random_normal<float>(batch.tokens * 32, 1);
  const Matrix inputs = on.upload(values, batch.tokens, 32), d = on.scratch.matrix(batch.tokens, 24);
  const Matrix out = on.scratch.matrix(batch.tokens, 8);
  const device::AttentionCall call{.batch = batch,
                                   .q = inputs.col_block(0, 8),
                                   .k = inputs.col_block(8, 8),
                                   .v = inputs.col_block(16, 8),
                                   .x = inputs.col_block(24, 8),
                                   .parameters = {},
                                   .training = true,
                                   .dropout = dropout,
                                   .dropout_key = kKey};
  float* saved = on.scratch.take<float>(attention.saved_floats(batch.tokens));
  attention.forward(on.context, call, out, saved);
  attention.backward(on.context, call, saved,
                     {.d_out = inputs.col_block(24, 8),
                      .dq = d.col_block(0, 8),
                      .dk = d.col_block(8, 8),
                      .dv = d.col_block(16, 8),
                      .dx = {},
                      .d_parameters = {}});
  return {on.download(out), on.download(d)};
}

void expect_same(const std::vector<std::vector<float>>& got, const std::vector<std::vector<float>>& first,
                 const std::string& what) {
  for (size_t i = 0; i < got.size(); ++i) {
    expect_close(got[i], first[i], tolerance(NumberType::kFloat32, 40, largest(first[i])),
                 what + " result " + std::to_string(i));
  }
}

// The fused kernel rounds, and drops the same weights.
TEST(DeviceAttention, FusedKernelIsPanelsRounded) {
  const AttentionShape shape{2, 4, 128, 8};
  for (const bool causal : {false, true}) {
    const auto exact = results(*device::make_panels(shape, device::softmax_rows(), 0.5f, causal, {}), shape, 0.3f);
    const auto rounded = results(*device::fused_softmax(shape, causal), shape, 0.3f);
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NE(exact[i], rounded[i]);
      expect_close(rounded[i], exact[i], tolerance(NumberType::kBfloat16, 40, largest(exact[i])),
                   "result " + std::to_string(i));
    }
  }
}

// Panels are cut by queries and by room: none, one and several sequences in each.
TEST(DeviceAttention, PanelsOfAnySizeAgree) {
  const AttentionShape shape{2, 4, 128, 8};
  std::vector<std::vector<float>> first;
  for (const device::PanelSizes sizes :
       {device::PanelSizes{}, {.queries = 5, .floats = 1}, {.queries = 16, .floats = 3000}, {.queries = 40}}) {
    const auto got = results(*device::make_panels(shape, device::softmax_rows(), 0.5f, false, sizes), shape, 0.3f);
    if (first.empty()) first = got;
    expect_same(got, first, "queries " + std::to_string(sizes.queries));
  }
}

// Sequences are computed together as long as there is room.
TEST(DeviceAttention, FeaturesOfAnyGroupsAgree) {
  const AttentionShape shape{2, 4, 128, 8};
  for (const bool causal : {false, true}) {
    std::vector<std::vector<float>> first;
    for (const int64_t floats : {1 << 20, 1, 300}) {
      const auto got =
          results(*device::make_feature_map(shape, device::lln_features(shape), causal, floats), shape, 0.0f);
      if (first.empty()) first = got;
      expect_same(got, first, "room " + std::to_string(floats));
    }
  }
}

TEST(DeviceAttention, WhatHasNoKernelIsRefusedInOneLine) {
  for (const char* text : {"inline:form=linear,causal=1", "nap:form=linear,causal=1"}) {
    try {
      device::make_attention(parse_attention(text), {2, 4, 64, 8});
      FAIL() << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("no causal kernel on CUDA"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace lra
