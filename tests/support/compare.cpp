// Comparison of numbers; see the header.
#include "tests/support/compare.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

namespace lra {
namespace {

template <class T>
double largest_of(std::span<const T> x) {
  double result = 0.0;
  for (const T value : x) result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

template <class A, class E>
std::string difference_of(std::span<const A> actual, std::span<const E> expected, double tolerance) {
  if (actual.size() != expected.size()) {
    return fmt::format("{} values where {} are expected", actual.size(), expected.size());
  }
  if (actual.empty()) return "nothing to compare: both are empty";
  if (!(tolerance >= 0.0 && std::isfinite(tolerance))) return fmt::format("a tolerance of {}", tolerance);
  size_t worst = 0, outside = 0;
  double worst_error = -1.0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    double error = std::abs(a - e);
    if (std::isinf(a) && a == e) error = 0.0;
    if (std::isnan(error)) error = INFINITY;
    outside += error > tolerance ? 1 : 0;
    if (error > worst_error) worst_error = error, worst = i;
  }
  if (outside == 0) return "";
  return fmt::format(
      "{} of {} values are off by more than {:.3g}; worst at index {}: {:.9g}, expected {:.9g}, off by {:.3g}", outside,
      actual.size(), tolerance, worst, static_cast<double>(actual[worst]), static_cast<double>(expected[worst]),
      worst_error);
}

template <class A, class E>
void expect_close_of(std::span<const A> actual, std::span<const E> expected, double tolerance,
                     const std::string& what) {
  const std::string text = difference_of(actual, expected, tolerance);
  if (!text.empty()) ADD_FAILURE() << what << ": " << text << "\nrepro: " << repro_line();
}

}  // namespace

double tolerance(NumberType type, int64_t reduction_length, double magnitude) {
  if (type == NumberType::kBfloat16) {
    return 32.0 * 0x1p-9 * magnitude + tolerance(NumberType::kFloat32, reduction_length, magnitude);
  }
  const double rounding = type == NumberType::kFloat32 ? 0x1p-24 : 0x1p-53;
  return rounding * (16.0 + static_cast<double>(std::max<int64_t>(reduction_length, 1))) * magnitude;
}

double largest(std::span<const float> x) { return largest_of(x); }
double largest(std::span<const double> x) { return largest_of(x); }

std::string difference(std::span<const float> actual, std::span<const double> expected, double tolerance) {
  return difference_of(actual, expected, tolerance);
}
std::string difference(std::span<const double> actual, std::span<const double> expected, double tolerance) {
  return difference_of(actual, expected, tolerance);
}
std::string difference(std::span<const float> actual, std::span<const float> expected, double tolerance) {
  return difference_of(actual, expected, tolerance);
}

void expect_close(std::span<const float> actual, std::span<const double> expected, double tolerance,
                  const std::string& what) {
  expect_close_of(actual, expected, tolerance, what);
}
void expect_close(std::span<const double> actual, std::span<const double> expected, double tolerance,
                  const std::string& what) {
  expect_close_of(actual, expected, tolerance, what);
}
void expect_close(std::span<const float> actual, std::span<const float> expected, double tolerance,
                  const std::string& what) {
  expect_close_of(actual, expected, tolerance, what);
}

std::string repro_line() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return program_invocation_name;
  return fmt::format("{} --gtest_filter='{}.{}'", program_invocation_name, test->test_suite_name(), test->name());
}

}  // namespace lra
