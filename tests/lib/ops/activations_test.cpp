// GELU and ReLU on a dense grid and at special values on every instruction set; their references against differences.
#include "lib/ops/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>

#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> grid() {
  std::vector<float> x;
  for (int i = -60000; i <= 60000; ++i) x.push_back(static_cast<float>(i) * 0x1p-12f * 0.6f);  // -8.8 … 8.8
  for (float power = 1e-30f; power < 1e30f; power *= 3.7f) x.insert(x.end(), {power, -power});
  x.insert(x.end(), {0.0f, -0.0f, 5.25f, -5.25f, 5.65f, -5.65f});
  return x;
}

// One row, or 3 columns with gaps: both ways through memory.
std::vector<float> apply(Gelu form, const std::vector<float>& x, bool backward) {
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<float> y(x.size()), ones(x.size(), 1.0f);
  if (backward) {
    gelu_backward(form, {x.data(), 1, n}, {ones.data(), 1, n}, {y.data(), 1, n});
  } else {
    gelu_forward(form, {x.data(), 1, n}, {y.data(), 1, n});
  }
  return y;
}

TEST(Gelu, IsAsExactAsPromised) {
  const std::vector<float> x = grid();
  for_each_target([&](const std::string& target) {
    const std::vector<float> y = apply(Gelu::kExact, x, false), slope = apply(Gelu::kExact, x, true);
    double worst = 0, worst_slope = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], phi = 0.5 * (1 + std::erf(v / std::numbers::sqrt2));
      const double density = std::exp(-v * v / 2) / std::sqrt(2 * std::numbers::pi);
      ASSERT_TRUE(std::isfinite(y[i]) && std::isfinite(slope[i])) << target << " at " << x[i];
      worst = std::max(worst, std::abs(y[i] - v * phi) / std::max(1.0, std::abs(v)));
      worst_slope = std::max(worst_slope, std::abs(slope[i] - (phi + v * density)));
    }
    RecordProperty(target + "_gelu_1e9", std::to_string(worst * 1e9));
    RecordProperty(target + "_slope_1e9", std::to_string(worst_slope * 1e9));
    EXPECT_LT(worst, 3e-7) << target;
    EXPECT_LT(worst_slope, 5e-7) << target;
  });
}

TEST(Gelu, TanhFormIsAsExactAsPromised) {
  const std::vector<float> x = grid();
  const std::vector<double> x64 = to_double(x), ones(x.size(), 1.0);
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<double> y64(x.size()), slope64(x.size());
  ref::gelu_forward<double>(Gelu::kTanh, {x64.data(), 1, n}, {y64.data(), 1, n});
  ref::gelu_backward<double>(Gelu::kTanh, {x64.data(), 1, n}, {ones.data(), 1, n}, {slope64.data(), 1, n});
  for_each_target([&](const std::string& target) {
    const std::vector<float> y = apply(Gelu::kTanh, x, false), slope = apply(Gelu::kTanh, x, true);
    for (size_t i = 0; i < x.size(); ++i) {
      const double size = std::max(1.0, std::abs(x64[i]));
      ASSERT_LE(std::abs(y[i] - y64[i]), 5e-7 * size) << target << " at " << x[i];
      // The reference's own slope is infinity times 0 far out.
      if (std::abs(x[i]) < 1e10f) {
        ASSERT_LE(std::abs(slope[i] - slope64[i]), 1e-6) << target << " at " << x[i];
      }
    }
  });
}

TEST(Gelu, SpecialValues) {
  const std::vector<float> x = {kInfinity, 1e30f, -1e30f, -20.0f, -0.0f, 0.0f, -3.4e38f, 3.4e38f, kNan, -kInfinity};
  for_each_target([&](const std::string& target) {
    for (const Gelu form : {Gelu::kExact, Gelu::kTanh}) {
      const std::vector<float> y = apply(form, x, false), slope = apply(form, x, true);
      EXPECT_EQ(y[0], kInfinity) << target;
      EXPECT_EQ(y[1], 1e30f) << target;
      for (const int i : {2, 3, 4, 6}) EXPECT_TRUE(y[i] == 0.0f && std::signbit(y[i])) << target << " at " << x[i];
      EXPECT_TRUE(y[5] == 0.0f && !std::signbit(y[5])) << target;
      EXPECT_EQ(y[7], 3.4e38f) << target;
      EXPECT_TRUE(std::isnan(y[8]) && std::isnan(y[9])) << target;  // as PyTorch: -infinity times 0
      const std::vector<float> slopes = {1, 1, 0, 0, 0.5f, 0.5f, 0, 1};
      for (size_t i = 0; i < slopes.size(); ++i) EXPECT_NEAR(slope[i], slopes[i], 2e-7) << target << " at " << x[i];
      EXPECT_TRUE(std::isnan(slope[8])) << target;
    }
  });
}

TEST(Relu, KeepsPositivesAndNan) {
  const std::vector<float> x = {1.5f, -1.5f, 0.0f, -0.0f, kInfinity, -kInfinity, 1e-40f, kNan, -2,
                                3,    -4,    5,    -6,    7,         -8,         9,      10};
  const std::vector<float> wanted = {1.5f, 0, 0, 0, kInfinity, 0, 1e-40f, kNan, 0, 3, 0, 5, 0, 7, 0, 9, 10};
  const int64_t n = static_cast<int64_t>(x.size());
  for_each_target([&](const std::string& target) {
    std::vector<float> y(x.size()), dx(x.size());
    const std::vector<float> dy(x.size(), 2.0f);
    relu_forward({x.data(), 1, n}, {y.data(), 1, n});
    relu_backward({x.data(), 1, n}, {dy.data(), 1, n}, {dx.data(), 1, n});
    std::vector<float> from_y(x.size());
    relu_backward({y.data(), 1, n}, {dy.data(), 1, n}, {from_y.data(), 1, n});
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << target;
      } else {
        EXPECT_EQ(y[i], wanted[i]) << target << " at " << x[i];
        EXPECT_EQ(dx[i], wanted[i] > 0 ? 2.0f : 0.0f) << target << " at " << x[i];
        EXPECT_EQ(from_y[i], dx[i]) << target << " at " << x[i];
      }
    }
  });
}

TEST(Activations, WorkInPlaceOnViewsWithGaps) {
  for_each_target([](const std::string& target) {
    for (const int rows : {0, 1, 7, 64}) {
      for (const int gap : {0, 3}) {
        const GappedMatrix<float> x(rows, 19, gap, 1), dy(rows, 19, gap, 2);
        GappedMatrix<float> y = x, dx = dy, relu = x, d_relu = dy;
        gelu_forward(Gelu::kExact, y.view(), y.view());
        gelu_backward(Gelu::kExact, x.view(), dx.view(), dx.view());
        relu_forward(relu.view(), relu.view());
        relu_backward(x.view(), d_relu.view(), d_relu.view());
        EXPECT_TRUE(y.intact() && dx.intact() && relu.intact() && d_relu.intact()) << target;
        if (rows == 0) continue;
        const auto x64 = x.as<double>(), dy64 = dy.as<double>();
        auto out = x64;
        ref::gelu_forward<double>(Gelu::kExact, x64.view(), out.view());
        expect_close(y.values(), out.values(), 2e-6, target + " gelu");
        ref::gelu_backward<double>(Gelu::kExact, x64.view(), dy64.view(), out.view());
        expect_close(dx.values(), out.values(), 2e-6, target + " gelu backward");
        ref::relu_forward<double>(x64.view(), out.view());
        expect_close(relu.values(), out.values(), 0.0, target + " relu");
        ref::relu_backward<double>(x64.view(), dy64.view(), out.view());
        expect_close(d_relu.values(), out.values(), 0.0, target + " relu backward");
      }
    }
  });
}

TEST(ActivationReferences, BackwardIsTheDerivativeOfForward) {
  constexpr int kRows = 5, kCols = 7;
  GappedMatrix<double> x(kRows, kCols, 0, 1, 2.0);
  const GappedMatrix<double> dy(kRows, kCols, 0, 2);
  const std::vector<double> weights = dy.values();
  GappedMatrix<double> y(kRows, kCols, 0), dx(kRows, kCols, 0);
  const auto total = [&] {
    const std::vector<double> out = y.values();
    return std::inner_product(out.begin(), out.end(), weights.begin(), 0.0);
  };
  for (const Gelu form : {Gelu::kExact, Gelu::kTanh}) {
    ref::gelu_backward<double>(form, x.read(), dy.view(), dx.view());
    const auto loss = [&] { return ref::gelu_forward<double>(form, x.read(), y.view()), total(); };
    expect_gradient(loss, {x.view().data, kRows * kCols}, dx.values(), form == Gelu::kExact ? "exact" : "tanh");
  }
  ref::relu_backward<double>(x.read(), dy.view(), dx.view());
  const auto loss = [&] { return ref::relu_forward<double>(x.read(), y.view()), total(); };
  expect_gradient(loss, {x.view().data, kRows * kCols}, dx.values(), "relu");
}

}  // namespace
}  // namespace lra
