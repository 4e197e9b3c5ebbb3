// Central differences; see the header.
#include "tests/support/gradient_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/data.h"

namespace lra {
namespace {

constexpr double kStep = 1e-5;
constexpr double kAllowed = 1e-7;

double slope(const std::function<double()>& loss, std::span<double> x, std::span<const double> direction) {
  const std::vector<double> start(x.begin(), x.end());
  const auto at = [&](double h) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = start[i] + h * direction[i];
    const double value = loss();
    std::copy(start.begin(), start.end(), x.begin());
    return value;
  };
  const double above = at(kStep);
  return (above - at(-kStep)) / (2 * kStep);
}

}  // namespace

std::string gradient_entry_difference(const std::function<double()>& loss, std::span<double> x,
                                      std::span<const double> gradient) {
  std::vector<double> slopes(x.size()), direction(x.size(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    direction[i] = 1.0;
    slopes[i] = slope(loss, x, direction);
    direction[i] = 0.0;
  }
  return difference(gradient, slopes, kAllowed * (largest(slopes) + std::abs(loss())));
}

std::string gradient_direction_difference(const std::function<double()>& loss, std::span<double> x,
                                          std::span<const double> gradient, int directions) {
  if (x.size() != gradient.size()) return difference(gradient, x, 0.0);
  std::vector<double> slopes, expected;
  for (int i = 0; i < directions; ++i) {
    std::vector<double> direction = random_normal<double>(static_cast<int64_t>(x.size()), 1000 + i);
    const double length = std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0));
    for (double& value : direction) value /= length;
    slopes.push_back(slope(loss, x, direction));
    expected.push_back(std::inner_product(direction.begin(), direction.end(), gradient.begin(), 0.0));
  }
  return difference(expected, slopes, kAllowed * (largest(slopes) + std::abs(loss())));
}

void expect_gradient(const std::function<double()>& loss, std::span<double> x, std::span<const double> gradient,
                     const std::string& what) {
  std::string text = gradient_entry_difference(loss, x, gradient);
  if (text.empty()) text = gradient_direction_difference(loss, x, gradient);
  if (!text.empty()) ADD_FAILURE() << what << ", gradient against differences: " << text << "\nrepro: " << repro_line();
}

}  // namespace lra
