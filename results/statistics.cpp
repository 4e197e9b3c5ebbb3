#include "results/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

#include "lib/util/check.h"

namespace lra {

namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Whether a deviation is what rounding leaves of equal values.
bool no_spread(double deviation, double magnitude) { return deviation <= 1e-12 * std::max(magnitude, 1e-300); }

double two_sided_p(double t, double degrees) {
  return 2.0 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), std::abs(t)));
}

double t_quantile(double degrees, double confidence) {
  return boost::math::quantile(boost::math::students_t(degrees), 0.5 + confidence / 2.0);
}

Difference t_test(double difference, double error, double degrees, double confidence) {
  const double reach = t_quantile(degrees, confidence) * error;
  return {.difference = difference,
          .statistic = difference / error,
          .degrees = degrees,
          .p = two_sided_p(difference / error, degrees),
          .interval = {difference - reach, difference + reach}};
}

// 1 for the least; values that tie share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<double> rank(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) rank[order[i]] = static_cast<double>(begin + end + 1) / 2.0;
  }
  return rank;
}

}  // namespace

Sample summarise(std::span<const double> values, double confidence) {
  Sample sample{.n = static_cast<int64_t>(values.size())};
  if (values.empty()) return sample;
  sample.mean = mean_of(values);
  if (values.size() < 2) return sample;
  const auto n = static_cast<double>(values.size());
  double squares = 0.0;
  for (const double value : values) squares += (value - sample.mean) * (value - sample.mean);
  sample.deviation = std::sqrt(squares / (n - 1.0));
  const double reach = t_quantile(n - 1.0, confidence) * sample.deviation / std::sqrt(n);
  sample.interval = {sample.mean - reach, sample.mean + reach};
  return sample;
}

Interval wilson_interval(int64_t successes, int64_t trials, double confidence) {
  check(successes >= 0 && successes <= trials, "{} successes of {} trials", successes, trials);
  if (trials == 0) return {};
  const double z = boost::math::quantile(boost::math::normal(), 0.5 + confidence / 2.0);
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
  const double reach = z / (1.0 + z * z / n) * std::sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n));
  // Exactly 0 and 1 at the ends, where rounding would miss them.
  return {successes == 0 ? 0.0 : centre - reach, successes == trials ? 1.0 : centre + reach};
}

Difference paired_t_test(std::span<const double> a, std::span<const double> b, double confidence) {
  check(a.size() == b.size(), "pairs of {} and {} values", a.size(), b.size());
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
  const Sample sample = summarise(differences, confidence);
  if (sample.n < 2 || no_spread(sample.deviation, std::abs(mean_of(a)) + std::abs(mean_of(b)))) {
    return {.difference = sample.mean};
  }
  const auto n = static_cast<double>(sample.n);
  return t_test(sample.mean, sample.deviation / std::sqrt(n), n - 1.0, confidence);
}

Difference welch_t_test(std::span<const double> a, std::span<const double> b, double confidence) {
  const Sample x = summarise(a, confidence), y = summarise(b, confidence);
  const double difference = x.mean - y.mean;
  if (x.n < 2 || y.n < 2) return {.difference = difference};
  const double magnitude = std::abs(x.mean) + std::abs(y.mean);
  if (no_spread(x.deviation, magnitude) && no_spread(y.deviation, magnitude)) return {.difference = difference};
  const auto n = static_cast<double>(x.n), m = static_cast<double>(y.n);
  const double u = x.deviation * x.deviation / n, v = y.deviation * y.deviation / m;
  return t_test(difference, std::sqrt(u + v), (u + v) * (u + v) / (u * u / (n - 1.0) + v * v / (m - 1.0)), confidence);
}

double mcnemar_p(int64_t only_a, int64_t only_b) {
  check(only_a >= 0 && only_b >= 0, "{} and {} rows", only_a, only_b);
  if (only_a == only_b) return 1.0;
  const boost::math::binomial fair(static_cast<double>(only_a + only_b), 0.5);
  return std::min(1.0, 2.0 * boost::math::cdf(fair, static_cast<double>(std::min(only_a, only_b))));
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.size(); ++i) {
    if (!std::isnan(p[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return p[i] < p[j]; });
  std::vector<double> corrected(p.begin(), p.end());
  double largest = 0.0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(order.size() - i) * p[order[i]]));
    corrected[order[i]] = largest;
  }
  return corrected;
}

Correlation spearman(std::span<const double> x, std::span<const double> y) {
  check(x.size() == y.size(), "pairs of {} and {} values", x.size(), y.size());
  Correlation result{.n = static_cast<int64_t>(x.size())};
  const std::vector<double> u = ranks(x), v = ranks(y);
  const double middle = static_cast<double>(x.size() + 1) / 2.0;  // the mean of all ranks, ties or not
  double uu = 0.0, vv = 0.0, uv = 0.0;
  for (size_t i = 0; i < u.size(); ++i) {
    uu += (u[i] - middle) * (u[i] - middle);
    vv += (v[i] - middle) * (v[i] - middle);
    uv += (u[i] - middle) * (v[i] - middle);
  }
  if (uu == 0.0 || vv == 0.0) return result;
  result.rho = std::clamp(uv / std::sqrt(uu * vv), -1.0, 1.0);
  return result;
}

}  // namespace lra
