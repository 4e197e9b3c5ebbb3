// Poolings against plain loops on every instruction set, and sequences without rows.
#include "lib/ops/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

TEST(SumPool, AgreesWithReference) {
  for (const int n : {0, 1, 7, 33, 64, 1000}) {
    for (const int e : {1, 19, 64, 131}) {
      const GappedMatrix<float> x(n, e, 3, 1);
      const std::vector<float> dy = random_normal<float>(e, 2);
      const float divisor = 37.0f;
      std::vector<double> y64(e);
      GappedMatrix<double> dx64(n, e, 0);
      const auto x64 = x.as<double>();
      ref::sum_pool_forward<double>(x64.view(), divisor, y64.data());
      ref::sum_pool_backward<double>(to_double(dy).data(), divisor, dx64.view());
      for_each_target([&](const std::string& target) {
        std::vector<float> y(e, NAN);
        GappedMatrix<float> dx(n, e, 2, 9);
        sum_pool_forward(x.view(), divisor, y.data());
        sum_pool_backward(dy.data(), divisor, dx.view());
        EXPECT_TRUE(dx.intact()) << target;
        // Terms are up to about 4 / divisor.
        expect_close(y, y64, tolerance(NumberType::kFloat32, n, largest(y64) + 4 / divisor), target + " y");
        if (n > 0) {
          expect_close(dx.values(), dx64.values(), tolerance(NumberType::kFloat32, 1, largest(dx64.values())),
                       target + " dx");
        }
      });
    }
  }
}

TEST(FirstPool, TakesTheFirstRow) {
  for (const int n : {0, 1, 7}) {
    const GappedMatrix<float> x(n, 5, 3, 1);
    const std::vector<float> dy = {1, 2, 3, 4, 5};
    std::vector<float> y(5, NAN);
    GappedMatrix<float> dx(n, 5, 1, 2);
    first_pool_forward(x.view(), y.data());
    first_pool_backward(dy.data(), dx.view());
    EXPECT_TRUE(dx.intact());
    for (int j = 0; j < 5; ++j) {
      EXPECT_EQ(y[j], n == 0 ? 0.0f : x.view().row(0)[j]) << n;
      for (int i = 0; i < n; ++i) EXPECT_EQ(dx.view().row(i)[j], i == 0 ? dy[j] : 0.0f) << n << " row " << i;
    }
  }
}

TEST(SumPoolReference, BackwardIsTheDerivativeOfForward) {
  GappedMatrix<double> x(4, 3, 0, 1), dx(4, 3, 0);
  const std::vector<double> dy = {0.5, -1.0, 2.0};
  const auto loss = [&] {
    std::vector<double> y(3);
    ref::sum_pool_forward<double>(x.read(), 7.0, y.data());
    return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
  };
  ref::sum_pool_backward<double>(dy.data(), 7.0, dx.view());
  expect_gradient(loss, {x.view().data, 12}, dx.values(), "dx");
}

}  // namespace
}  // namespace lra
