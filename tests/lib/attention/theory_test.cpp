// What theory says of the variants, measured: bounds and growth of the norms of P and of its Jacobian, limits in which
// variants meet, sums of rows. Sources of the statements: docs/attention.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/attention/families.h"
#include "tests/lib/attention/attention_problem.h"
#include "tests/support/sanitized.h"

namespace lra {
namespace {

struct Row {
  std::vector<double> x, p;
  double jacobian = 0.0;  // squared, or -1

  double sum() const { return std::accumulate(p.begin(), p.end(), 0.0); }
  double square() const { return std::inner_product(p.begin(), p.end(), p.begin(), 0.0); }
};

std::vector<Row> rows_of(const Problem& p) {
  std::vector<Row> rows;
  std::vector<const float*> pointers;
  Arena arena;
  p.kernel->visit_weights(p.input(pointers), arena, [&](const WeightRow& row) {
    rows.push_back({{row.scores.begin(), row.scores.end()},
                    {row.weights.begin(), row.weights.end()},
                    row.jacobian_square.value_or(-1.0)});
  });
  return rows;
}

// Gaussian queries and keys, times `scale`; parameters as they start.
Problem problem(const std::string& spec, int64_t n, uint64_t seed = 1, int heads = 1, int d = 32, float scale = 1.0f) {
  Problem p(spec, n, heads, d, 0.0f, seed);
  p.training = false;
  for (float& x : p.inputs) x *= scale;
  Random random(seed, RandomStream::kInit);
  for (size_t i = 0; i < p.parameters.size(); ++i) p.kernel->parameters()[i].start(random, p.parameters[i]);
  return p;
}

// Means over draws of ‖P‖_F and of its square.
struct Norms {
  double norm = 0.0, square = 0.0;
};
Norms mean_norms(const std::string& spec, int64_t n, int draws) {
  Norms mean;
  for (int seed = 1; seed <= draws; ++seed) {
    double square = 0.0;
    for (const Row& row : rows_of(problem(spec, n, seed))) square += row.square();
    mean.norm += std::sqrt(square) / draws, mean.square += square / draws;
  }
  return mean;
}
double mean_square(const std::string& spec, int64_t n, int draws) { return mean_norms(spec, n, draws).square; }

// Of a symmetric matrix given by its product with a vector, from below, by power iteration.
double spectral_norm(int64_t n, const std::function<std::vector<double>(const std::vector<double>&)>& times) {
  std::vector<double> v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = i % 2 == 0 ? 1.0 : -0.5;
  double norm = 0.0;
  for (int step = 0; step < 50; ++step) {
    const double size = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    if (size == 0.0) return 0.0;
    for (double& x : v) x /= size;
    v = times(v);
    norm = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
  }
  return norm;
}

// diag(w) - w wᵀ / total.
double spectral_norm(const std::vector<double>& w, double total) {
  return spectral_norm(std::ssize(w), [&](const std::vector<double>& v) {
    const double along = std::inner_product(w.begin(), w.end(), v.begin(), 0.0) / total;
    std::vector<double> out(v.size());
    for (size_t j = 0; j < v.size(); ++j) out[j] = w[j] * (v[j] - along);
    return out;
  });
}

TEST(Theory, SoftmaxBounds) {
  for (const float scale : {0.1f, 1.0f, 3.0f, 10.0f}) {
    const auto n = 200;
    double frobenius = 0.0, jacobian = 0.0;
    for (const Row& row : rows_of(problem("softmax", n, 1, 1, 32, scale))) {
      EXPECT_GE(row.square(), 1.0 / n * (1 - 1e-5));
      EXPECT_LE(row.square(), 1.0 + 1e-5);
      EXPECT_LE(row.jacobian, 0.25 + 1e-6);
      EXPECT_LE(spectral_norm(row.p, 1.0), 0.5 + 1e-6);
      EXPECT_NEAR(row.sum(), 1.0, 1e-5);
      frobenius += row.square(), jacobian += row.jacobian;
    }
    EXPECT_GE(std::sqrt(frobenius), 1.0 - 1e-5);
    EXPECT_LE(std::sqrt(frobenius), std::sqrt(n));
    EXPECT_LE(std::sqrt(jacobian), std::sqrt(n) / 2);
  }
  // Two equal weights reach the bound of the Jacobian.
  Problem two = problem("softmax", 2);
  std::fill(two.inputs.begin(), two.inputs.end(), 0.5f);
  for (const Row& row : rows_of(two)) {
    EXPECT_NEAR(row.jacobian, 0.25, 1e-6);
    EXPECT_NEAR(spectral_norm(row.p, 1.0), 0.5, 1e-6);
  }
}

TEST(Theory, SparsemaxHasAJacobianThatItsNormDoesNotBound) {
  bool above = false;
  for (const Row& row : rows_of(problem("sparsemax", 200, 1, 1, 32, 0.3f))) {
    const auto support = std::ranges::count_if(row.p, [](double p) { return p > 0.0; });
    EXPECT_NEAR(row.jacobian, static_cast<double>(support - 1), 1e-4);
    EXPECT_LE(row.square(), 1.0 + 1e-5);
    std::vector<double> inside;
    for (const double p : row.p) inside.push_back(p > 0.0 ? 1.0 : 0.0);
    EXPECT_LE(spectral_norm(inside, static_cast<double>(support)), 1.0 + 1e-6);
    above = above || row.jacobian > 4.0;
  }
  EXPECT_TRUE(above);
}

void expect_same_rows(const std::string& a, const std::string& b, double tolerance) {
  const std::vector<Row> left = rows_of(problem(a, 100)), right = rows_of(problem(b, 100));
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = 0; j < left[i].p.size(); ++j) EXPECT_NEAR(left[i].p[j], right[i].p[j], tolerance) << a << " " << b;
  }
}

TEST(Theory, EntmaxMeetsSoftmaxAndSparsemax) {
  expect_same_rows("entmax:alpha=2", "sparsemax", 0.0);
  expect_same_rows("entmax:alpha=1.999999", "sparsemax", 1e-5);
  expect_same_rows("entmax:alpha=2.000001", "sparsemax", 1e-5);  // by bisection
  expect_same_rows("entmax:alpha=1.500001", "entmax15", 1e-5);   // by powers
  expect_same_rows("entmax:alpha=1.001", "softmax", 2e-3);
  for (const char* spec :
       {"sparsemax", "entmax15", "entmax:alpha=1.3", "entmax:alpha=2.5", "fusedmax", "oscarmax:beta=0.01"}) {
    for (const Row& row : rows_of(problem(spec, 150))) EXPECT_NEAR(row.sum(), 1.0, 2e-5) << spec;
  }
}

// E ‖S^q / c‖² = N² m_q / c² for Gaussian queries and keys.
TEST(Theory, PolynomialNorms) {
  for (int q = 1; q <= 3; ++q) {
    const std::string power = "polynomial:power=" + std::to_string(q) + ",form=quadratic,scale=";
    EXPECT_NEAR(mean_square(power + "sqrt", 256, 64) / (256 * polynomial_moment(q, 32)), 1.0, 0.1);
    const Norms moment = mean_norms(power + "moment", 256, 64);
    EXPECT_NEAR(moment.square / 256, 1.0, 0.1);
    EXPECT_LE(moment.norm, 16.0 * 1.02);  // by Jensen's inequality, but for the draws
    double jacobian = 0.0;
    for (int seed = 1; seed <= 64; ++seed) {
      for (const Row& row : rows_of(problem(power + "sqrt", 256, seed))) jacobian += row.jacobian / 64;
    }
    EXPECT_NEAR(jacobian / (256.0 * q * q * polynomial_moment(q - 1, 32)), 1.0, 0.1);
  }
}

// Slope of log ‖P‖_F over log N.
double growth(const std::string& spec, int draws) {
  double mean_x = 0.0, mean_y = 0.0, xy = 0.0, xx = 0.0;
  const std::vector<double> lengths = {64, 128, 256, 512, 1024, 2048};
  std::vector<double> norms;
  for (const double n : lengths) {
    norms.push_back(0.5 * std::log(mean_square(spec, static_cast<int64_t>(n), draws)));
    mean_x += std::log(n) / 6, mean_y += norms.back() / 6;
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    xy += (std::log(lengths[i]) - mean_x) * (norms[i] - mean_y);
    xx += (std::log(lengths[i]) - mean_x) * (std::log(lengths[i]) - mean_x);
  }
  return xy / xx;
}

TEST(Theory, GrowthWithTheLength) {
  // x³ has heavy tails; the other scales multiply the same draws.
  EXPECT_NEAR(growth("polynomial:power=3,scale=1", kSanitized ? 3 : 64), 1.0, kSanitized ? 0.1 : 0.03);
  EXPECT_NEAR(growth("polynomial:power=3,scale=sqrt", 3), 0.5, 0.1);
  EXPECT_NEAR(growth("polynomial:power=3,scale=n", 3), 0.0, 0.1);
  EXPECT_NEAR(growth("softmax", 3), 0.0, 0.06);
  // N(0, 1) scores: ‖softmax‖² -> e, ‖relu / n‖² -> 1/2.
  EXPECT_NEAR(mean_square("softmax", 1024, 3) / std::exp(1.0), 1.0, 0.1);
  EXPECT_NEAR(mean_square("relu-n", 1024, 3), 0.5, 0.03);
}

TEST(Theory, Sigmoid) {
  const auto n = 100;
  for (const Row& row : rows_of(problem("sigmoid", n))) EXPECT_LE(std::sqrt(row.jacobian), std::sqrt(n) / 4);
  Problem zero = problem("sigmoid", n);
  std::fill(zero.inputs.begin(), zero.inputs.end(), 0.0f);
  for (const Row& row : rows_of(zero)) EXPECT_NEAR(row.sum(), n / (n + 1.0), 1e-5);
}

// Scores of one sign: keys of ones, queries of that sign.
Problem of_sign(const std::string& spec, float sign, float size) {
  Problem p = problem(spec, 30, 1, 1, 4);
  for (int64_t i = 0; i < p.n; ++i) {
    for (int64_t c = 0; c < 4; ++c) {
      p.inputs[i * 16 + c] = sign * size * static_cast<float>(i + 1);
      p.inputs[i * 16 + 4 + c] = 1.0f + 0.01f * static_cast<float>(i);
    }
  }
  return p;
}

TEST(Theory, SinksAndSoftpick) {
  for (const Row& row : rows_of(problem("softmax1", 50))) EXPECT_LT(row.sum(), 1.0);
  for (const Row& row : rows_of(of_sign("softmax1", -1.0f, 100.0f))) EXPECT_LT(row.sum(), 1e-6);
  for (const Row& row : rows_of(problem("softpick", 50, 1, 1, 32, 2.0f))) EXPECT_LE(row.sum(), 1.0 + 1e-6);
  for (const Row& row : rows_of(of_sign("softpick", -1.0f, 1.0f))) EXPECT_EQ(row.sum(), 0.0);
  for (const Row& row : rows_of(of_sign("softpick", 1.0f, 100.0f))) EXPECT_NEAR(row.sum(), 1.0, 1e-5);
}

double entropy(const std::vector<double>& p) {
  double h = 0.0;
  for (const double value : p) h -= value > 0.0 ? value * std::log(value) : 0.0;
  return h;
}

TEST(Theory, Temperatures) {
  // s log n = 1 is softmax.
  Problem scaled = problem("ssmax", 512);
  scaled.parameters[0][0] = static_cast<float>(1.0 / std::log(512.0));
  const std::vector<Row> ssmax = rows_of(scaled), softmax = rows_of(problem("softmax", 512));
  for (size_t i = 0; i < ssmax.size(); ++i) EXPECT_NEAR(ssmax[i].square(), softmax[i].square(), 1e-5);
  // One key δ above the rest: p = n^(sδ) / (n^(sδ) + n - 1).
  for (const double s : {0.5, 1.0, 2.0}) {
    for (const double delta : {0.5, 1.0, 3.0}) {
      Problem one = problem("ssmax", 512, 1, 1, 4);
      one.parameters[0][0] = static_cast<float>(s);
      for (int64_t i = 0; i < one.n; ++i) {
        float *q = one.inputs.data() + i * 16, *k = q + 4;
        std::fill_n(q, 4, 0.0f), std::fill_n(k, 4, 0.0f);
        q[0] = 1.0f, k[0] = i == 7 ? static_cast<float>(2.0 * delta) : 0.0f;
      }
      const double high = std::pow(512.0, s * delta);
      for (const Row& row : rows_of(one)) EXPECT_NEAR(row.p[7], high / (high + 511.0), 1e-5) << s << ' ' << delta;
    }
  }
  for (const float scale : {0.2f, 1.0f, 2.0f, 4.0f}) {
    const std::vector<Row> adaptive = rows_of(problem("adaptive-temp", 100, 1, 1, 32, scale)),
                           plain = rows_of(problem("softmax", 100, 1, 1, 32, scale));
    for (size_t i = 0; i < plain.size(); ++i) {
      const double h = entropy(plain[i].p);
      EXPECT_LE(entropy(adaptive[i].p), h + 1e-5);
      if (h < 0.84 || h > 5.95) {
        EXPECT_NEAR(entropy(adaptive[i].p), h, 1e-5);
      }
    }
  }
}

TEST(Theory, AffineRows) {
  const auto n = 120;
  for (const Row& row : rows_of(problem("inline", n))) {
    double mean = 0.0, variance = 0.0;
    for (const double x : row.x) mean += x / n;
    for (const double x : row.x) variance += (x - mean) * (x - mean) / n;
    EXPECT_NEAR(row.sum(), 1.0, 1e-5);
    EXPECT_NEAR(row.square(), (1.0 + variance) / n, 1e-6);
  }
  Problem nap = problem("nap", n);
  nap.parameters[0][0] = 1.5f, nap.parameters[1][0] = 0.25f;
  for (const Row& row : rows_of(nap)) {
    double mean = 0.0, variance = 0.0;
    for (const double x : row.x) mean += x / n;
    for (const double x : row.x) variance += (x - mean) * (x - mean) / n;
    const double r = std::sqrt(variance) / (std::sqrt(variance) + 1e-3);
    EXPECT_NEAR(row.sum() / n, 0.25, 1e-5);
    EXPECT_NEAR(row.square(), n * (1.5 * 1.5 * r * r + 0.25 * 0.25), 1e-2);
  }
}

TEST(Theory, BoundsOfSingleWeights) {
  const auto n = 300;
  const double e2 = std::exp(2.0);
  const std::vector<Row> softmax = rows_of(problem("softmax", n)), adjusted = rows_of(problem("sa-softmax-norm", n));
  for (const Row& row : rows_of(problem("sin-softmax", n))) {
    EXPECT_LE(*std::ranges::max_element(row.p), e2 / (e2 + n - 1) + 1e-6);
  }
  for (const Row& row : rows_of(problem("gd-softmax", n, 1, 1, 32, 4.0f))) {
    EXPECT_LE(*std::ranges::max_element(row.p), 2.0 + 1e-5);
    EXPECT_GE(row.sum(), 1.0 - 1e-5);
  }
  expect_same_rows("gd-softmax:beta=1", "softmax", 1e-6);
  for (size_t i = 0; i < softmax.size(); ++i) {
    for (int j = 0; j < n; ++j) {
      EXPECT_GE(adjusted[i].p[j], 0.0);
      EXPECT_LE(adjusted[i].p[j], softmax[i].p[j] + 1e-6);
    }
  }
}

TEST(Theory, ForgettingNothingIsSoftmax) {
  Problem fox = problem("fox-bi", 64);
  std::fill(fox.parameters[0].begin(), fox.parameters[0].end(), 0.0f);
  std::fill(fox.parameters[1].begin(), fox.parameters[1].end(), 40.0f);
  const std::vector<Row> forgets = rows_of(fox), softmax = rows_of(problem("softmax", 64));
  for (size_t i = 0; i < softmax.size(); ++i) {
    for (size_t j = 0; j < softmax[i].p.size(); ++j) EXPECT_NEAR(forgets[i].p[j], softmax[i].p[j], 1e-6);
  }
}

TEST(Theory, ExclusionIsOrthogonalToTheValue) {
  const Problem p("softmax+xsa", 50, 2, 8, 0.0f);
  const Result result = run(p);
  for (int64_t i = 0; i < p.n; ++i) {
    for (int64_t head = 0; head < 2; ++head) {
      double dot = 0.0;
      for (int64_t c = head * 8; c < (head + 1) * 8; ++c) {
        dot += static_cast<double>(result.out[i * 16 + c]) * p.inputs[i * 64 + 32 + c];
      }
      EXPECT_NEAR(dot, 0.0, 1e-5);
    }
  }
}

}  // namespace
}  // namespace lra
