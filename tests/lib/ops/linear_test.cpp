// Linear layers against plain loops in double, and those against central differences.
#include "lib/ops/linear.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <numeric>
#include <string>
#include <tuple>

#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

using Shape = std::tuple<int, int, int>;  // N, in, out

class LinearShapes : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override { omp_set_num_threads(1); }
};

TEST_P(LinearShapes, AgreesWithReference) {
  const auto [n, in, out] = GetParam();
  const GappedMatrix<float> x(n, in, 2, 1), weight(out, in, 0, 2), dy(n, out, 3, 3);
  const std::vector<float> bias = random_normal<float>(out, 4);
  const auto x64 = x.as<double>(), weight64 = weight.as<double>(), dy64 = dy.as<double>();
  const std::vector<double> bias64 = to_double(bias);
  for_each_target([&, n = n, in = in, out = out](const std::string& target) {
    for (const bool with_bias : {true, false}) {
      const std::string what = target + (with_bias ? " with bias" : " without bias");
      GappedMatrix<float> y(n, out, 1, 9), dx(n, in, 1, 8), d_weight(out, in, 0, 7);
      auto y64 = y.as<double>(), dx64 = dx.as<double>(), d_weight64 = d_weight.as<double>();
      std::vector<float> d_bias = random_normal<float>(out, 6);
      std::vector<double> d_bias64 = to_double(d_bias);
      linear_forward(x.view(), weight.view(), with_bias ? bias.data() : nullptr, y.view());
      linear_backward(x.view(), weight.view(), dy.view(), dx.view(), d_weight.view(),
                      with_bias ? d_bias.data() : nullptr);
      ref::linear_forward<double>(x64.view(), weight64.view(), with_bias ? bias64.data() : nullptr, y64.view());
      ref::linear_backward<double>(x64.view(), weight64.view(), dy64.view(), dx64.view(), d_weight64.view(),
                                   with_bias ? d_bias64.data() : nullptr);
      EXPECT_TRUE(y.intact() && dx.intact() && d_weight.intact()) << what;
      if (n > 0) {
        expect_close(y.values(), y64.values(), tolerance(NumberType::kFloat32, in, largest(y64.values())), what + " y");
        expect_close(dx.values(), dx64.values(), tolerance(NumberType::kFloat32, out, largest(dx64.values())),
                     what + " dx");
      }
      expect_close(d_weight.values(), d_weight64.values(),
                   tolerance(NumberType::kFloat32, n, largest(d_weight64.values())), what + " d_weight");
      expect_close(d_bias, d_bias64, tolerance(NumberType::kFloat32, n, largest(d_bias64)), what + " d_bias");

      // Without dx the gradients of the parameters are the same.
      GappedMatrix<float> again(out, in, 0, 7);
      linear_backward(x.view(), weight.view(), dy.view(), {}, again.view(), nullptr);
      EXPECT_EQ(again.values(), d_weight.values()) << what;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearShapes,
                         testing::Values(Shape{0, 5, 3}, Shape{1, 64, 64}, Shape{7, 3, 5}, Shape{64, 64, 128},
                                         Shape{33, 17, 70}, Shape{1000, 64, 67}));

TEST(LinearReference, BackwardIsTheDerivativeOfForward) {
  constexpr int kRows = 4, kIn = 3, kOut = 5;
  GappedMatrix<double> x(kRows, kIn, 0, 1), weight(kOut, kIn, 0, 2), dy(kRows, kOut, 0, 3);
  std::vector<double> bias = random_normal<double>(kOut, 4);
  const auto loss = [&] {
    GappedMatrix<double> y(kRows, kOut, 0);
    ref::linear_forward<double>(x.view(), weight.view(), bias.data(), y.view());
    const std::vector<double> out = y.values(), weights = dy.values();
    return std::inner_product(out.begin(), out.end(), weights.begin(), 0.0);
  };
  GappedMatrix<double> dx(kRows, kIn, 0), d_weight(kOut, kIn, 0);
  std::vector<double> d_bias(kOut, 0.0);
  ref::linear_backward<double>(x.read(), weight.read(), dy.read(), dx.view(), d_weight.view(), d_bias.data());
  expect_gradient(loss, {x.view().data, kRows * kIn}, dx.values(), "dx");
  expect_gradient(loss, {weight.view().data, kOut * kIn}, d_weight.values(), "d_weight");
  expect_gradient(loss, bias, d_bias, "d_bias");
}

}  // namespace
}  // namespace lra
