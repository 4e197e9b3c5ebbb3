// Matrix products against plain loops in double: shapes, transposes, strides, and both ways to write.
#include "lib/ops/matmul.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>

#include "tests/support/compare.h"
#include "tests/support/data.h"

namespace lra {
namespace {

using Shape = std::tuple<int, int, int>;  // M, N, K

class MatmulShapes : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override { omp_set_num_threads(1); }
};

TEST_P(MatmulShapes, AgreesWithReference) {
  const auto [m, n, k] = GetParam();
  for (int form = 0; form < 16; ++form) {
    const Transpose ta = form & 1 ? Transpose::kYes : Transpose::kNo;
    const Transpose tb = form & 2 ? Transpose::kYes : Transpose::kNo;
    const Write write = form & 4 ? Write::kAdd : Write::kOver;
    const float alpha = form & 8 ? -0.75f : 1.0f;
    const GappedMatrix<float> a(ta == Transpose::kNo ? m : k, ta == Transpose::kNo ? k : m, 3, 1);
    const GappedMatrix<float> b(tb == Transpose::kNo ? k : n, tb == Transpose::kNo ? n : k, 5, 2);
    GappedMatrix<float> c(m, n, 1, 3);
    const auto a64 = a.as<double>(), b64 = b.as<double>();
    auto c64 = c.as<double>();
    if (write == Write::kOver) {
      // What stood there must not matter.
      for (int i = 0; i < m; ++i) std::fill_n(c.view().row(i), n, NAN);
    }
    matmul(a.view(), ta, b.view(), tb, c.view(), write, alpha);
    ref::matmul(a64.view(), ta, b64.view(), tb, c64.view(), write, static_cast<double>(alpha));
    EXPECT_TRUE(c.intact()) << form;
    if (m * n == 0) continue;
    expect_close(c.values(), c64.values(), tolerance(NumberType::kFloat32, k, 1 + largest(c64.values())),
                 "matmul " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + " form " +
                     std::to_string(form));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatmulShapes,
                         testing::Values(Shape{1, 1, 1}, Shape{7, 5, 3}, Shape{64, 64, 64}, Shape{1, 64, 128},
                                         Shape{64, 1, 33}, Shape{97, 32, 1}, Shape{130, 20, 257}, Shape{0, 4, 5},
                                         Shape{4, 0, 5}, Shape{4, 6, 0}, Shape{0, 0, 0}, Shape{1000, 64, 64}));

TEST(Matmul, RejectsShapesThatDoNotFit) {
  std::vector<float> data(100);
  const auto matrix = [&](int rows, int cols) { return Matrix(data.data(), rows, cols); };
  const Transpose no = Transpose::kNo, yes = Transpose::kYes;
  EXPECT_THROW(matmul(matrix(2, 3), no, matrix(4, 5), no, matrix(2, 5), Write::kOver), std::logic_error);
  EXPECT_THROW(matmul(matrix(2, 3), yes, matrix(3, 5), no, matrix(2, 5), Write::kOver), std::logic_error);
  EXPECT_THROW(matmul(matrix(2, 3), no, matrix(3, 5), no, matrix(2, 4), Write::kOver), std::logic_error);
  EXPECT_THROW(matmul(matrix(2, 3), no, matrix(3, 5), no, matrix(3, 5), Write::kAdd), std::logic_error);
}

TEST(Matmul, RepeatsItsBits) {
  omp_set_num_threads(1);
  const GappedMatrix<float> a(129, 70, 0, 1), b(70, 65, 0, 2);
  GappedMatrix<float> first(129, 65, 0), second(129, 65, 0);
  matmul(a.view(), Transpose::kNo, b.view(), Transpose::kNo, first.view(), Write::kOver);
  matmul(a.view(), Transpose::kNo, b.view(), Transpose::kNo, second.view(), Write::kOver);
  EXPECT_EQ(first.values(), second.values());
}

}  // namespace
}  // namespace lra
