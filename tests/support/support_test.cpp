// The helpers of tests, fed with wrong data: each must find it.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/gradient_check.h"

namespace lra {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Tolerance, GrowsWithLengthAndMagnitude) {
  EXPECT_DOUBLE_EQ(tolerance(NumberType::kFloat32, 1, 1.0), 17 * 0x1p-24);
  EXPECT_DOUBLE_EQ(tolerance(NumberType::kFloat64, 84, 2.0), 200 * 0x1p-53);
  EXPECT_DOUBLE_EQ(tolerance(NumberType::kFloat32, 0, 1.0), tolerance(NumberType::kFloat32, 1, 1.0));
  EXPECT_EQ(tolerance(NumberType::kFloat32, 10, 0.0), 0.0);
  EXPECT_DOUBLE_EQ(tolerance(NumberType::kBfloat16, 8, 3.0), 3.0 * (0x1p-4 + 24 * 0x1p-24));
}

TEST(Compare, AcceptsWhatIsClose) {
  EXPECT_EQ(difference(std::vector<float>{1, 2, -kInfinity}, std::vector<double>{1.05, 1.95, -INFINITY}, 0.1), "");
}

TEST(Compare, FindsNothingDifferentSizesAndWrongValues) {
  const std::vector<float> none, two = {1, 2}, off = {1, 2.5f};
  EXPECT_NE(difference(none, none, 1.0), "");
  EXPECT_NE(difference(two, std::vector<float>{1, 2, 3}, 1.0), "");
  EXPECT_NE(difference(two, none, 1.0), "");
  EXPECT_NE(difference(two, off, 0.4), "");
  EXPECT_NE(difference(two, two, -1.0), "");
  EXPECT_NE(difference(two, two, NAN), "");
  EXPECT_NE(difference(two, two, INFINITY), "");
}

TEST(Compare, FindsNanAndInfinity) {
  const std::vector<float> good = {1, 2}, nan = {1, kNan}, infinite = {1, kInfinity}, minus = {1, -kInfinity};
  EXPECT_NE(difference(nan, good, 1e30), "");
  EXPECT_NE(difference(good, nan, 1e30), "");
  EXPECT_NE(difference(nan, nan, 1e30), "");
  EXPECT_NE(difference(infinite, good, 1e30), "");
  EXPECT_NE(difference(infinite, minus, 1e30), "");
  EXPECT_EQ(difference(infinite, infinite, 0.0), "");
}

TEST(Compare, NamesTheWorstPlace) {
  const std::string text = difference(std::vector<float>{1, 5, 2}, std::vector<double>{1, 2, 3}, 0.5);
  EXPECT_NE(text.find("2 of 3"), std::string::npos) << text;
  EXPECT_NE(text.find("index 1"), std::string::npos) << text;
}

TEST(Compare, FailsTheTestWithALineThatRepeatsIt) {
  static const std::vector<float> actual = {1, 2};
  static const std::vector<double> expected = {1, 3};
  EXPECT_NONFATAL_FAILURE(expect_close(actual, expected, 0.5, "name of the case"), "name of the case");
  EXPECT_NONFATAL_FAILURE(expect_close(actual, expected, 0.5, ""),
                          "--gtest_filter='Compare.FailsTheTestWithALineThatRepeatsIt'");
}

double cubic(const std::vector<double>& x) { return x[0] * x[0] * x[0] + 2 * x[0] * x[1] + std::sin(x[2]); }
std::vector<double> cubic_gradient(const std::vector<double>& x) {
  return {3 * x[0] * x[0] + 2 * x[1], 2 * x[0], std::cos(x[2])};
}

TEST(GradientCheck, AcceptsARightGradientAndLeavesTheData) {
  std::vector<double> x = {0.3, -2.0, 1.0};
  const std::vector<double> start = x;
  expect_gradient([&] { return cubic(x); }, x, cubic_gradient(x), "cubic");
  EXPECT_EQ(x, start);
}

TEST(GradientCheck, FindsWrongGradients) {
  std::vector<double> x = {0.3, -2.0, 1.0};
  const auto loss = [&] { return cubic(x); };
  for (size_t wrong = 0; wrong < x.size(); ++wrong) {
    for (const double change : {1e-5, -0.5, static_cast<double>(kNan)}) {
      std::vector<double> gradient = cubic_gradient(x);
      gradient[wrong] += change;
      EXPECT_NE(gradient_entry_difference(loss, x, gradient), "") << wrong << " " << change;
      EXPECT_NE(gradient_direction_difference(loss, x, gradient), "") << wrong << " " << change;
    }
  }
  const std::vector<double> shorter = {1.0};
  EXPECT_NE(gradient_entry_difference(loss, x, shorter), "");
  EXPECT_NE(gradient_direction_difference(loss, x, shorter), "");
  EXPECT_NE(gradient_entry_difference([] { return 1.0; }, {}, {}), "");
}

TEST(GradientCheck, FailsTheTest) {
  static std::vector<double> x = {0.3, -2.0, 1.0};
  EXPECT_NONFATAL_FAILURE(expect_gradient([] { return cubic(x); }, x, std::vector<double>{0, 0, 0}, "zeros"), "zeros");
}

TEST(Data, DependsOnTheSeedAlone) {
  EXPECT_EQ(random_normal<float>(100, 7), random_normal<float>(100, 7));
  EXPECT_NE(random_normal<float>(100, 7), random_normal<float>(100, 8));
  EXPECT_EQ(to_double(random_normal<float>(100, 7)), random_normal<double>(100, 7));
}

TEST(Data, GapsAreWatched) {
  GappedMatrix<float> matrix(3, 5, 2, 1);
  EXPECT_TRUE(matrix.intact());
  EXPECT_EQ(matrix.values().size(), 15u);
  matrix.view().row(1)[4] = 7;
  EXPECT_TRUE(matrix.intact());
  matrix.view().row(1)[5] = 0;
  EXPECT_FALSE(matrix.intact());
  GappedMatrix<float> before(3, 5, 0), after(3, 5, 0);
  before.view().row(0)[-1] = 0;
  after.view().row(3)[0] = 0;
  EXPECT_FALSE(before.intact());
  EXPECT_FALSE(after.intact());
}

}  // namespace
}  // namespace lra
