// Layer normalisation against plain loops in double on every instruction set, and those against central differences.
#include "lib/ops/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <tuple>

#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

constexpr float kEpsilon = 1e-5f;

using Shape = std::tuple<int, int>;  // N, E

class LayerNormShapes : public testing::TestWithParam<Shape> {};

TEST_P(LayerNormShapes, AgreesWithReference) {
  const auto [n, e] = GetParam();
  const GappedMatrix<float> x(n, e, 3, 1), dy(n, e, 1, 2);
  const std::vector<float> weight = random_normal<float>(e, 3), bias = random_normal<float>(e, 4);
  const std::vector<double> weight64 = to_double(weight), bias64 = to_double(bias);
  const auto x64 = x.as<double>(), dy64 = dy.as<double>();
  GappedMatrix<double> y64(n, e, 0), dx64(n, e, 0, 5);
  std::vector<double> mean64(n), rstd64(n), d_weight64 = random_normal<double>(e, 6),
                                            d_bias64 = random_normal<double>(e, 7);
  ref::layer_norm_forward<double>(x64.view(), weight64.data(), bias64.data(), static_cast<double>(kEpsilon), y64.view(),
                                  mean64.data(), rstd64.data());
  ref::layer_norm_backward<double>(x64.view(), weight64.data(), mean64.data(), rstd64.data(), dy64.view(), dx64.view(),
                                   d_weight64.data(), d_bias64.data());
  for_each_target([&, n = n, e = e](const std::string& target) {
    GappedMatrix<float> y(n, e, 2), dx(n, e, 2, 5);
    std::vector<float> mean(n), rstd(n), d_weight = random_normal<float>(e, 6), d_bias = random_normal<float>(e, 7);
    layer_norm_forward(x.view(), weight.data(), bias.data(), kEpsilon, y.view(), mean.data(), rstd.data());
    layer_norm_backward(x.view(), weight.data(), mean.data(), rstd.data(), dy.view(), dx.view(), d_weight.data(),
                        d_bias.data());
    EXPECT_TRUE(y.intact() && dx.intact()) << target;
    if (n > 0) {
      const double rounding = tolerance(NumberType::kFloat32, e, 1.0);
      // rstd multiplies the error of x - mean: large where a row hardly varies.
      const double growth = 1.0 + largest(rstd64);
      expect_close(mean, mean64, rounding * largest(x64.values()), target + " mean");
      expect_close(rstd, rstd64, rounding * growth * growth, target + " rstd");
      expect_close(y.values(), y64.values(), rounding * growth * (1 + largest(y64.values())), target + " y");
      expect_close(dx.values(), dx64.values(), rounding * growth * growth * (1 + largest(dx64.values())),
                   target + " dx");
    }
    const double over_rows = tolerance(NumberType::kFloat32, n + e, 1.0);
    expect_close(d_weight, d_weight64, over_rows * (1 + largest(d_weight64)), target + " d_weight");
    expect_close(d_bias, d_bias64, over_rows * (1 + largest(d_bias64)), target + " d_bias");
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNormShapes,
                         testing::Combine(testing::Values(0, 1, 7, 64, 1000), testing::Values(3, 17, 64, 100)));

TEST(LayerNorm, KeepsTheVarianceOfRowsFarFromZero) {
  // E[x^2] - E[x]^2 would lose all digits here.
  for_each_target([](const std::string& target) {
    std::vector<float> x(64), y(64), weight(64, 1.0f), bias(64, 0.0f);
    for (int i = 0; i < 64; ++i) x[i] = 4096.0f + static_cast<float>(i % 2);
    float mean, rstd;
    layer_norm_forward({x.data(), 1, 64}, weight.data(), bias.data(), 0.0f, {y.data(), 1, 64}, &mean, &rstd);
    EXPECT_EQ(mean, 4096.5f) << target;
    EXPECT_EQ(rstd, 2.0f) << target;
    for (int i = 0; i < 64; ++i) EXPECT_EQ(y[i], i % 2 == 0 ? -1.0f : 1.0f) << target << " " << i;
  });
}

TEST(LayerNormReference, BackwardIsTheDerivativeOfForward) {
  constexpr int kRows = 3, kCols = 6;
  GappedMatrix<double> x(kRows, kCols, 0, 1), dy(kRows, kCols, 0, 2);
  std::vector<double> weight = random_normal<double>(kCols, 3), bias = random_normal<double>(kCols, 4);
  std::vector<double> mean(kRows), rstd(kRows);
  const auto loss = [&] {
    GappedMatrix<double> y(kRows, kCols, 0);
    std::vector<double> m(kRows), r(kRows);
    ref::layer_norm_forward<double>(x.read(), weight.data(), bias.data(), 1e-5, y.view(), m.data(), r.data());
    const std::vector<double> out = y.values(), weights = dy.values();
    return std::inner_product(out.begin(), out.end(), weights.begin(), 0.0);
  };
  GappedMatrix<double> y(kRows, kCols, 0), dx(kRows, kCols, 0);
  std::vector<double> d_weight(kCols, 0.0), d_bias(kCols, 0.0);
  ref::layer_norm_forward<double>(x.read(), weight.data(), bias.data(), 1e-5, y.view(), mean.data(), rstd.data());
  ref::layer_norm_backward<double>(x.read(), weight.data(), mean.data(), rstd.data(), dy.read(), dx.view(),
                                   d_weight.data(), d_bias.data());
  expect_gradient(loss, {x.view().data, kRows * kCols}, dx.values(), "dx");
  expect_gradient(loss, weight, d_weight, "d_weight");
  expect_gradient(loss, bias, d_bias, "d_bias");
}

}  // namespace
}  // namespace lra
