// Statistics of a few runs: intervals of means and of accuracies, tests of differences, correlation. What the data
// cannot tell is NaN, never a guess: a spread of one run, a test without spread, a correlation with a constant.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace lra {

inline constexpr double kConfidence = 0.95;
inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

struct Interval {
  double low = kUndefined, high = kUndefined;
};

// n = 0: all undefined. n = 1: the mean alone. Equal values: an interval of no width.
struct Sample {
  int64_t n = 0;
  double mean = kUndefined;
  double deviation = kUndefined;  // of the sample, divisor n - 1
  Interval interval = {};         // Student's t, of the mean
};
Sample summarise(std::span<const double> values, double confidence = kConfidence);

// Of a share, from the successes of independent trials; 0 trials: undefined. Wilson's.
Interval wilson_interval(int64_t successes, int64_t trials, double confidence = kConfidence);

// Of mean(a) - mean(b). Fewer than two values on a side give the difference alone; so do values without spread, since
// accuracies are multiples of 1 / rows and a few equal ones say nothing of the noise between runs.
struct Difference {
  double difference = kUndefined;
  double statistic = kUndefined, degrees = kUndefined;  // Student's t and its degrees of freedom
  double p = kUndefined;                                // two-sided
  Interval interval = {};
};
// a[i] and b[i] belong together.
Difference paired_t_test(std::span<const double> a, std::span<const double> b, double confidence = kConfidence);
// Independent samples of unequal variance.
Difference welch_t_test(std::span<const double> a, std::span<const double> b, double confidence = kConfidence);

// McNemar's exact test of two classifiers on the same rows, from the rows that only one of them gets right: two-sided
// binomial; 1 where they never differ.
double mcnemar_p(int64_t only_a, int64_t only_b);

// Holm's step-down correction, in the order given. NaN stays NaN and is no comparison.
std::vector<double> holm(std::span<const double> p);

// Spearman's rank correlation, ties share their mean rank. Undefined where one side is constant.
struct Correlation {
  int64_t n = 0;
  double rho = kUndefined;
};
Correlation spearman(std::span<const double> x, std::span<const double> y);

}  // namespace lra
