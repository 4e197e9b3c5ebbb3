// Statistics against SciPy's values (data/statistics.json, recorded by record_statistics.py), and what is undefined.
#include "results/statistics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lib/util/json.h"

namespace lra {
namespace {

using Values = std::vector<double>;

Json result_of(const Json& input) {
  const std::string kind = input.at("kind");
  if (kind == "wilson") {
    const Interval i = wilson_interval(input.at("successes"), input.at("trials"));
    return {{"low", i.low}, {"high", i.high}};
  }
  if (kind == "mcnemar") return {{"p", mcnemar_p(input.at("only_a"), input.at("only_b"))}};
  const auto a = input.at("a").get<Values>();
  if (kind == "mean") {
    const Sample s = summarise(a);
    return {{"mean", s.mean}, {"deviation", s.deviation}, {"low", s.interval.low}, {"high", s.interval.high}};
  }
  if (kind == "holm") return {{"corrected", holm(a)}};
  const auto b = input.at("b").get<Values>();
  if (kind == "spearman") {
    return {{"rho", spearman(a, b).rho}};
  }
  const Difference d = kind == "paired" ? paired_t_test(a, b) : welch_t_test(a, b);
  return {{"difference", d.difference}, {"statistic", d.statistic}, {"degrees", d.degrees}, {"p", d.p},
          {"low", d.interval.low},      {"high", d.interval.high}};
}

// Values agree to ten digits: both sides compute in double, and no case cancels more than five.
void expect_near(const Json& got, const Json& want, const std::string& where) {
  if (want.is_structured()) {
    ASSERT_EQ(got.size(), want.size()) << where;
    for (const auto& [key, value] : want.items()) {
      expect_near(want.is_array() ? got.at(std::stoul(key)) : got.at(key), value, fmt::format("{} {}", where, key));
    }
    return;
  }
  const auto x = got.get<double>(), y = want.get<double>();
  EXPECT_LE(std::abs(x - y), 1e-10 * std::max(1.0, std::abs(y))) << where << ": " << x << ", SciPy " << y;
}

TEST(Statistics, AgreesWithSciPy) {
  const Json cases = read_json(std::string(LRA_SOURCE_DIR) + "/tests/results/data/statistics.json").at("cases");
  ASSERT_GE(cases.size(), 20u);
  for (const Json& input : cases) expect_near(result_of(input), input.at("want"), dump_json(input));
}

TEST(Statistics, OneRunHasNoSpread) {
  EXPECT_TRUE(std::isnan(summarise({}).mean));
  const Values one = {0.5};
  const Sample sample = summarise(one);
  EXPECT_EQ(sample.n, 1);
  EXPECT_EQ(sample.mean, 0.5);
  EXPECT_TRUE(std::isnan(sample.deviation));
  EXPECT_TRUE(std::isnan(sample.interval.low));
  for (const Difference& d : {paired_t_test(one, one), welch_t_test(one, Values{0.4, 0.6})}) {
    EXPECT_EQ(d.difference, 0.0);
    EXPECT_TRUE(std::isnan(d.p));
    EXPECT_TRUE(std::isnan(d.interval.high));
  }
  EXPECT_TRUE(std::isnan(paired_t_test({}, {}).difference));
  EXPECT_TRUE(std::isnan(welch_t_test({}, one).difference));
}

TEST(Statistics, EqualValuesAreNoProof) {
  const Values high = {0.4, 0.4, 0.4}, low = {0.3, 0.3, 0.3};
  EXPECT_EQ(summarise(low).interval.low, summarise(low).interval.high);
  // Differences that are equal but for rounding.
  for (const Difference& d :
       {welch_t_test(high, low), paired_t_test(high, low), paired_t_test(Values{0.3, 0.7}, Values{0.1, 0.5})}) {
    EXPECT_GT(d.difference, 0.09);
    EXPECT_TRUE(std::isnan(d.p));
    EXPECT_TRUE(std::isnan(d.statistic));
  }
}

TEST(Statistics, NoTrialsNoInterval) {
  EXPECT_TRUE(std::isnan(wilson_interval(0, 0).low));
  EXPECT_THROW(wilson_interval(3, 2), std::logic_error);
}

TEST(Statistics, HolmSkipsWhatWasNotTested) {
  EXPECT_TRUE(holm({}).empty());
  const Values corrected = holm(Values{0.02, std::nan(""), 0.03});
  EXPECT_EQ(corrected[0], 0.04);
  EXPECT_TRUE(std::isnan(corrected[1]));
  EXPECT_EQ(corrected[2], 0.04);
}

TEST(Statistics, CorrelationWithAConstantIsUndefined) {
  EXPECT_TRUE(std::isnan(spearman(Values{1, 2, 3}, Values{2, 2, 2}).rho));
  EXPECT_TRUE(std::isnan(spearman({}, {}).rho));
  const Correlation two = spearman(Values{1, 2}, Values{3, 2});
  EXPECT_EQ(two.n, 2);
  EXPECT_EQ(two.rho, -1.0);
}

}  // namespace
}  // namespace lra
