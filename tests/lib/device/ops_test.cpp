// Operations on a ragged batch against the references in double, one sequence at a time where they are of a sequence.
#include "lib/device/ops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lib/ops/cross_entropy.h"
#include "lib/ops/dropout.h"
#include "lib/ops/embedding.h"
#include "lib/ops/layer_norm.h"
#include "lib/ops/linear.h"
#include "lib/ops/pooling.h"
#include "tests/lib/device/on_device.h"
#include "tests/support/compare.h"

namespace lra {
namespace {

constexpr std::array<uint32_t, 2> kKey = {17, 4};
// With none, one, a whole chunk and a longer sequence.
const std::vector<int64_t> kLengths = {3, 0, 1, 130, 0, 64};
constexpr int32_t kVocabulary = 11, kPlaces = 200;

double allowed(int64_t length, double magnitude) { return tolerance(NumberType::kFloat32, length, magnitude); }

struct Shape {
  int64_t rows, in, out;
};

TEST(DeviceOps, Linear) {
  for (const auto& [rows, in, out] : {Shape{1, 1, 1}, Shape{65, 7, 13}, Shape{200, 33, 5}, Shape{0, 4, 4}}) {
    const auto x = random_normal<float>(rows * in, 1), w = random_normal<float>(out * in, 2);
    const auto b = random_normal<float>(out, 3), dy = random_normal<float>(rows * out, 4);
    const auto start_dx = random_normal<float>(rows * in, 5), start_dw = random_normal<float>(out * in, 6);
    OnDevice on;
    const Matrix dx = on.upload(x, rows, in, 3), dw = on.upload(start_dw, out, in), y = on.upload(dy, rows, out, 2);
    const Matrix X = on.upload(x, rows, in, 3), W = on.upload(w, out, in), dY = on.upload(dy, rows, out, 1);
    const Matrix added = on.upload(start_dx, rows, in);
    float *bias = on.upload(b), *d_bias = on.upload(b);
    device::linear_forward(on.context, X, W, bias, y);
    device::linear_backward(on.context, X, W, dY, dx, dw, d_bias);
    device::linear_backward(on.context, X, W, dY, added, on.upload(start_dw, out, in), nullptr, Write::kAdd);

    auto dx2 = to_double(x), dw2 = to_double(start_dw), db2 = to_double(b), y2 = to_double(dy);
    const auto x2 = to_double(x), w2 = to_double(w), dy2 = to_double(dy), b2 = to_double(b);
    const MatrixView<const double> rx(x2.data(), rows, in), rw(w2.data(), out, in), rdy(dy2.data(), rows, out);
    ref::linear_forward<double>(rx, rw, b2.data(), {y2.data(), rows, out});
    ref::linear_backward<double>(rx, rw, rdy, {dx2.data(), rows, in}, {dw2.data(), out, in}, db2.data());
    if (rows == 0) continue;
    expect_close(on.download(y), y2, allowed(in, 3), "y");
    expect_close(on.download(dx), dx2, allowed(out, 3), "dx");
    expect_close(on.download(dw), dw2, allowed(rows, 3), "dw");
    expect_close(on.download(d_bias, out), db2, allowed(rows, 3), "db");
    for (size_t i = 0; i < dx2.size(); ++i) dx2[i] += start_dx[i];
    expect_close(on.download(added), dx2, allowed(out, 3), "dx added to");
  }
}

// Operands are rounded as the mode says: numbers of few bits stay what they are. cuBLAS need not round in products as
// small as these.
TEST(DeviceOps, ProductModesRoundOperands) {
  for (const auto mode : {device::ProductMode::kFloat32, device::ProductMode::kTf32, device::ProductMode::kBfloat16}) {
    OnDevice on(mode);
    const std::vector<float> x = {1.0f + 1.0f / 128, 1.0f + 1.0f / 1024, 1.0f + 1.0f / 4096};
    const Matrix X = on.upload(x, 3, 1), one = on.upload({1.0f}, 1, 1), y = on.upload(x, 3, 1);
    on.device.multiply(device::product(X, Transpose::kNo, one, Transpose::kYes, y));
    const std::vector<float> got = on.download(y);
    EXPECT_EQ(got[0], x[0]);
    if (mode != device::ProductMode::kFloat32 && on.device.name() != "emulated device") continue;
    EXPECT_EQ(got[1], mode == device::ProductMode::kBfloat16 ? 1.0f : x[1]);
    EXPECT_EQ(got[2], mode == device::ProductMode::kFloat32 ? x[2] : 1.0f);
  }
}

TEST(DeviceOps, LayerNorm) {
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{1, 1}, {67, 5}, {130, 64}, {3, 300}}) {
    const auto x = random_normal<float>(rows * width, 1), dy = random_normal<float>(rows * width, 2);
    const auto w = random_normal<float>(width, 3), b = random_normal<float>(width, 4);
    const auto start = random_normal<float>(rows * width, 5);
    OnDevice on;
    const Matrix X = on.upload(x, rows, width, 1), dY = on.upload(dy, rows, width), y = on.upload(x, rows, width);
    const Matrix dx = on.upload(start, rows, width);
    float *W = on.upload(w), *B = on.upload(b), *dw = on.upload(w), *db = on.upload(b);
    float *mean = on.scratch.take<float>(rows), *rstd = on.scratch.take<float>(rows);
    device::layer_norm_forward(on.context, X, W, B, 1e-5f, y, mean, rstd);
    device::layer_norm_backward(on.context, X, W, mean, rstd, dY, dx, dw, db);

    const auto x2 = to_double(x), dy2 = to_double(dy), w2 = to_double(w), b2 = to_double(b);
    std::vector<double> y2(x.size()), mean2(rows), rstd2(rows), dw2 = w2, db2 = b2, dx2 = to_double(start);
    const MatrixView<const double> rx(x2.data(), rows, width), rdy(dy2.data(), rows, width);
    ref::layer_norm_forward<double>(rx, w2.data(), b2.data(), 1e-5, {y2.data(), rows, width}, mean2.data(),
                                    rstd2.data());
    ref::layer_norm_backward<double>(rx, w2.data(), mean2.data(), rstd2.data(), rdy, {dx2.data(), rows, width},
                                     dw2.data(), db2.data());
    // A single column has the deviation 0: its rstd is 1 / sqrt(epsilon).
    const double scale = width == 1 ? 1000.0 : 8.0;
    expect_close(on.download(y), y2, allowed(width, scale), "y");
    expect_close(on.download(dx), dx2, allowed(width, scale), "dx");
    expect_close(on.download(dw, width), dw2, allowed(rows, 3), "dw");
    expect_close(on.download(db, width), db2, allowed(rows, 3), "db");
  }
}

struct Batch {
  OnDevice on;
  device::RaggedBatch batch;
  std::vector<Example> examples = examples_of(kLengths, kVocabulary);

  explicit Batch(bool first_row = false) {
    batch = device::make_batch(
        examples,
        {.vocabulary = kVocabulary, .places = kPlaces, .pair = false, .first_row = first_row, .gradients = true}, 5,
        on.scratch);
  }
  // Factor of row and column by ref::dropout_keeps.
  double factor(uint32_t site, float rate, int64_t row, int64_t column) const {
    size_t s = 0;
    while (row >= batch.first[s + 1]) ++s;
    const DropoutKey key{kKey, site, static_cast<uint32_t>(5 + s)};
    const bool kept =
        ref::dropout_keeps(key, rate, static_cast<uint32_t>(row - batch.first[s]), static_cast<uint32_t>(column));
    return kept ? static_cast<double>(dropout_scale(rate)) : 0.0;
  }
};

TEST(DeviceOps, DropoutDrawsTheMasksOfTheCpu) {
  for (const float rate : {0.0f, 0.3f}) {
    for (const int64_t width : {1, 16, 129}) {
      Batch b;
      const int64_t rows = b.batch.tokens;
      const auto x = random_normal<float>(rows * width, 1), branch = random_normal<float>(rows * width, 2);
      const Matrix X = b.on.upload(x, rows, width, 1), Branch = b.on.upload(branch, rows, width);
      const Matrix copied = b.on.upload(x, rows, width), added = b.on.upload(x, rows, width);
      const device::RowDropout dropout{b.batch, kKey, dropout_site(DropoutSite::kHidden, 3), rate};
      device::dropout_copy(b.on.context, dropout, X, copied);
      device::dropout_add(b.on.context, dropout, X, Branch, added);
      std::vector<double> copied2, added2;
      for (int64_t at = 0; at < rows * width; ++at) {
        const double factor = b.factor(dropout.site, rate, at / width, at % width);
        copied2.push_back(factor * x[static_cast<size_t>(at)]);
        added2.push_back(x[static_cast<size_t>(at)] + factor * branch[static_cast<size_t>(at)]);
      }
      expect_close(b.on.download(copied), copied2, allowed(1, 4), "copy");
      expect_close(b.on.download(added), added2, allowed(1, 4), "add");
    }
  }
}

TEST(DeviceOps, GeluWithDropout) {
  for (const Gelu form : {Gelu::kExact, Gelu::kTanh}) {
    Batch b;
    const int64_t rows = b.batch.tokens, width = 9;
    const auto x = random_normal<float>(rows * width, 1, 3.0), dy = random_normal<float>(rows * width, 2);
    const Matrix X = b.on.upload(x, rows, width), y = b.on.upload(x, rows, width), d = b.on.upload(dy, rows, width);
    const device::RowDropout dropout{b.batch, kKey, dropout_site(DropoutSite::kHidden, 0), 0.2f};
    device::gelu_dropout_forward(b.on.context, form, dropout, X, y);
    device::gelu_dropout_backward(b.on.context, form, dropout, X, d, d);
    const auto x2 = to_double(x);
    auto dy2 = to_double(dy);
    std::vector<double> y2(x.size()), dx2(x.size()), factors;
    for (int64_t at = 0; at < rows * width; ++at)
      factors.push_back(b.factor(dropout.site, 0.2f, at / width, at % width));
    for (size_t i = 0; i < dy2.size(); ++i) dy2[i] *= factors[i];
    ref::gelu_forward<double>(form, {x2.data(), rows, width}, {y2.data(), rows, width});
    ref::gelu_backward<double>(form, {x2.data(), rows, width}, {dy2.data(), rows, width}, {dx2.data(), rows, width});
    for (size_t i = 0; i < y2.size(); ++i) y2[i] *= factors[i];
    expect_close(b.on.download(y), y2, allowed(1, 12), "y");
    expect_close(b.on.download(d), dx2, allowed(1, 6), "dx");
  }
}

TEST(DeviceOps, Relu) {
  OnDevice on;
  const std::vector<float> x = {-1.0f, 0.0f, 2.0f, NAN};
  const Matrix y = on.upload(x, 2, 2, 1), d = on.upload({1, 1, 1, 1}, 2, 2);
  device::relu_forward(on.context, y);
  device::relu_backward(on.context, y, d);
  const std::vector<float> got = on.download(y);
  EXPECT_EQ(got[0], 0.0f);
  EXPECT_EQ(got[1], 0.0f);
  EXPECT_EQ(got[2], 2.0f);
  EXPECT_TRUE(std::isnan(got[3]));
  EXPECT_EQ(on.download(d), (std::vector<float>{0, 0, 1, 1}));
}

TEST(DeviceOps, Embedding) {
  for (const bool first_row : {false, true}) {
    Batch b(first_row);
    const int64_t width = 7, rows = b.batch.tokens;
    const auto token = random_normal<float>(kVocabulary * width, 1),
               position = random_normal<float>(kPlaces * width, 2);
    const auto first = random_normal<float>(width, 3), dx = random_normal<float>(rows * width, 4);
    const Matrix Token = b.on.upload(token, kVocabulary, width), Position = b.on.upload(position, kPlaces, width);
    const Matrix d_token = b.on.upload(token, kVocabulary, width), d_position = b.on.upload(position, kPlaces, width);
    float *First = b.on.upload(first), *d_first = b.on.upload(first);
    const Matrix x = b.on.scratch.matrix(rows, width);
    device::embedding_forward(b.on.context, b.batch, Token, Position, first_row ? First : nullptr, x);
    device::embedding_backward(b.on.context, b.batch, b.on.upload(dx, rows, width, 2), d_token, d_position,
                               first_row ? d_first : nullptr);
    auto x2 = std::vector<double>(), dt2 = to_double(token), dp2 = to_double(position), df2 = to_double(first);
    int64_t row = 0;
    for (const Example& example : b.examples) {
      for (int64_t i = first_row ? -1 : 0; i < std::ssize(example.first.ids); ++i, ++row) {
        const auto at = static_cast<size_t>(std::max<int64_t>(i, 0));
        const int64_t place = i < 0 ? 0 : example.first.places[at] + (first_row ? 1 : 0);
        for (int64_t j = 0; j < width; ++j) {
          const double d = dx[static_cast<size_t>(row * width + j)];
          const auto own = static_cast<size_t>(i < 0 ? j : example.first.ids[at] * width + j);
          x2.push_back((i < 0 ? first[own] : token[own]) + static_cast<double>(position[place * width + j]));
          (i < 0 ? df2[own] : dt2[own]) += d;
          dp2[static_cast<size_t>(place * width + j)] += d;
        }
      }
    }
    expect_close(b.on.download(x), x2, allowed(1, 4), "x");
    expect_close(b.on.download(d_token), dt2, allowed(64, 4), "d_token");
    expect_close(b.on.download(d_position), dp2, allowed(8, 4), "d_position");
    expect_close(b.on.download(d_first, width), df2, allowed(8, 4), "d_first");
  }
}

TEST(DeviceOps, Pooling) {
  for (const device::Pooling pooling : {device::Pooling{true, 0.0f}, {false, 0.0f}, {false, 48.0f}}) {
    Batch b;
    const int64_t width = 5, rows = b.batch.tokens, sequences = b.batch.sequences;
    const auto x = random_normal<float>(rows * width, 1), d = random_normal<float>(sequences * width, 2);
    const Matrix pooled = b.on.scratch.matrix(sequences, width), dx = b.on.scratch.matrix(rows, width);
    device::pool_forward(b.on.context, b.batch, pooling, b.on.upload(x, rows, width, 1), pooled);
    device::pool_backward(b.on.context, b.batch, pooling, b.on.upload(d, sequences, width), dx);
    std::vector<double> pooled2(static_cast<size_t>(sequences * width)), dx2(x.size());
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t first = b.batch.first[static_cast<size_t>(s)], n = kLengths[static_cast<size_t>(s)];
      const double divisor = pooling.divisor > 0 ? pooling.divisor : static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < width; ++j) {
          const double share = pooling.first ? (i == 0 ? 1.0 : 0.0) : 1.0 / divisor;
          pooled2[static_cast<size_t>(s * width + j)] += share * x[static_cast<size_t>((first + i) * width + j)];
          dx2[static_cast<size_t>((first + i) * width + j)] = share * d[static_cast<size_t>(s * width + j)];
        }
      }
    }
    expect_close(b.on.download(pooled), pooled2, allowed(8, 4), "pooled");
    expect_close(b.on.download(dx), dx2, allowed(1, 4), "dx");
  }
}

TEST(DeviceOps, Pair) {
  const int64_t examples = 3, width = 4;
  const auto pooled = random_normal<float>(2 * examples * width, 1),
             d_in = random_normal<float>(examples * 4 * width, 2);
  OnDevice on;
  const Matrix P = on.upload(pooled, 2 * examples, width), in = on.scratch.matrix(examples, 4 * width);
  const Matrix dP = on.scratch.matrix(2 * examples, width);
  device::combine_pair(on.context, P, in);
  device::combine_pair_backward(on.context, P, on.upload(d_in, examples, 4 * width), dP);
  std::vector<double> in2, dp2(pooled.size());
  for (int64_t i = 0; i < examples; ++i) {
    const float *x = pooled.data() + 2 * i * width, *y = x + width, *d = d_in.data() + i * 4 * width;
    for (int64_t j = 0; j < width; ++j) in2.push_back(x[j]);
    for (int64_t j = 0; j < width; ++j) in2.push_back(y[j]);
    for (int64_t j = 0; j < width; ++j) in2.push_back(static_cast<double>(x[j]) * y[j]);
    for (int64_t j = 0; j < width; ++j) in2.push_back(static_cast<double>(x[j]) - y[j]);
    for (int64_t j = 0; j < width; ++j) {
      dp2[static_cast<size_t>(2 * i * width + j)] =
          d[j] + static_cast<double>(d[2 * width + j]) * y[j] + d[3 * width + j];
      dp2[static_cast<size_t>((2 * i + 1) * width + j)] =
          d[width + j] + static_cast<double>(d[2 * width + j]) * x[j] - d[3 * width + j];
    }
  }
  expect_close(on.download(in), in2, allowed(1, 6), "in");
  expect_close(on.download(dP), dp2, allowed(2, 6), "d_pooled");
}

TEST(DeviceOps, CrossEntropy) {
  const int64_t rows = 5, classes = 10;
  const auto logits = random_normal<float>(rows * classes, 1, 30.0);
  const std::vector<int32_t> labels = {0, 9, 4, 4, 2};
  OnDevice on;
  double* losses = on.scratch.take<double>(rows);
  const Matrix d = on.scratch.matrix(rows, classes), L = on.upload(logits, rows, classes);
  device::cross_entropy(on.context, L, on.upload(labels), 0.25f, losses, d);
  std::vector<double> got(rows);
  on.device.download(got.data(), losses, rows * int64_t{sizeof(double)});
  const std::vector<float> got_d = on.download(d);
  for (size_t i = 0; i < labels.size(); ++i) {
    std::vector<float> wanted(classes);
    const std::span<const float> row(logits.data() + i * classes, classes);
    EXPECT_NEAR(got[i], lra::cross_entropy(row, labels[i], 0.25f, wanted), 1e-12);
    for (int64_t j = 0; j < classes; ++j) EXPECT_NEAR(got_d[i * classes + j], wanted[j], 1e-8);
  }
}

TEST(DeviceOps, UpdateIsThatOfTheCpu) {
  const int64_t size = 5000;
  auto p = random_normal<float>(size, 1), m = random_normal<float>(size, 3, 0.1), v = random_normal<float>(size, 4);
  const auto g = random_normal<float>(size, 2);
  for (float& x : v) x *= x;
  OnDevice on;
  float *P = on.upload(p), *G = on.upload(g), *M = on.upload(m), *V = on.upload(v);
  EXPECT_NEAR(device::l2_norm(on.context, G, size), l2_norm(g), 1e-10);
  const AdamWSettings settings{
      .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1};
  device::adamw_update(on.context, settings, 3, size, P, G, M, V);
  lra::adamw_update(settings, 3, p, g, m, v);
  expect_close(on.download(P, size), p, allowed(1, 4), "parameters");
  expect_close(on.download(M, size), m, allowed(1, 1), "m");
  expect_close(on.download(V, size), v, allowed(1, 8), "v");
  device::scale(on.context, 0.5f, G, size);
  EXPECT_EQ(on.download(G, 2), (std::vector<float>{0.5f * g[0], 0.5f * g[1]}));
}

}  // namespace
}  // namespace lra
