// The linear forms: polynomial's features, that they are the quadratic form, and when form=auto takes them.
// attention_test.cpp has them against the reference in double.
#include "lib/attention/polynomial_linear.h"

#include "lib/attention/square_features.h"
#include "lib/attention/tile_matmul.h"
#include "tests/lib/attention/attention_problem.h"
#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

std::unique_ptr<AttentionKernel> kernel_of(const std::string& spec, int head_dim = 32) {
  return make_attention(parse_attention(spec), {2, head_dim, 1024, 2 * head_dim});
}

struct Features {
  int64_t n, d, columns;
  std::vector<float> panels, values;  // (F, columns)

  Features(const std::vector<float>& x, int64_t tokens, int64_t width)
      : n(tokens), d(width), columns(padded_columns(tokens)), panels(columns * width) {
    values.assign(square_feature_count(d) * columns, NAN);
    pack_transposed(ConstMatrix(x.data(), n, d), panels.data());
    square_features(panels.data(), d, {values.data(), square_feature_count(d), columns});
  }
};

TEST(SquareFeatures, WeightedProductIsTheSquareOfTheDotProduct) {
  constexpr int64_t kTokens = 37;
  for (const int64_t d : {1, 5, 32}) {
    const std::vector<float> q = random_normal<float>(kTokens * d, 1), k = random_normal<float>(kTokens * d, 2);
    std::vector<float> weights(square_feature_count(d), NAN);
    square_feature_weights(d, weights.data());
    for_each_target([&](const std::string& target) {
      const Features phi_q(q, kTokens, d), phi_k(k, kTokens, d);
      for (int64_t t = 0; t < kTokens; ++t) {
        double dot = 0.0, product = 0.0, size = 0.0;
        for (int64_t c = 0; c < d; ++c) dot += static_cast<double>(q[t * d + c]) * k[t * d + c];
        for (int64_t f = 0; f < square_feature_count(d); ++f) {
          const double term = static_cast<double>(weights[f]) * phi_q.values[f * phi_q.columns + t] *
                              phi_k.values[f * phi_k.columns + t];
          product += term;
          size += std::abs(term);
        }
        // Only the features are rounded.
        ASSERT_NEAR(product, dot * dot, tolerance(NumberType::kFloat32, 1, size)) << target << " D=" << d;
      }
      for (int64_t f = 0; f < square_feature_count(d); ++f) {
        for (int64_t t = kTokens; t < phi_q.columns; ++t) ASSERT_EQ(phi_q.values[f * phi_q.columns + t], 0.0f);
      }
    });
  }
}

// sum_f g_f x_i x_j, derived by hand.
TEST(SquareFeatures, Backward) {
  constexpr int64_t kTokens = 37;
  for (const int64_t d : {1, 5, 32}) {
    const std::vector<float> x = random_normal<float>(kTokens * d, 3);
    for_each_target([&](const std::string& target) {
      const Features phi(x, kTokens, d);
      const int64_t features = square_feature_count(d);
      const std::vector<float> g = random_normal<float>(features * phi.columns, 4);
      std::vector<double> wanted(d * kTokens, 0.0);
      std::vector<float> dx(d * phi.columns, NAN), got;
      square_features_backward(phi.panels.data(), {g.data(), features, phi.columns}, {dx.data(), d, phi.columns});
      for (int64_t i = 0, f = 0; i < d; ++i) {
        for (int64_t j = i; j < d; ++j, ++f) {
          for (int64_t t = 0; t < kTokens; ++t) {
            const double gradient = g[f * phi.columns + t];
            wanted[i * kTokens + t] += gradient * x[t * d + j];
            wanted[j * kTokens + t] += gradient * x[t * d + i];
          }
        }
      }
      for (int64_t i = 0; i < d; ++i) {
        got.insert(got.end(), dx.begin() + i * phi.columns, dx.begin() + i * phi.columns + kTokens);
      }
      expect_close(got, wanted, tolerance(NumberType::kFloat32, d, largest(wanted)), target);
    });
  }
}

TEST(LinearForm, GivesWhatTheQuadraticFormGives) {
  for (const std::string spec :
       {"polynomial:power=1,scale=sqrt", "polynomial:power=1,scale=moment,length=max,gain=1",
        "polynomial:power=2,scale=n", "polynomial:power=2,scale=100,gain=1", "polynomial:power=1,scale=sqrt,causal=1",
        "polynomial:power=2,scale=n,gain=1,causal=1", "inline:features=identity", "inline:causal=1"}) {
    for (const int64_t n : {1, 95, 96, 97, 700}) {
      for (const int d : {16, 24}) {
        const Problem quadratic(spec + ",form=quadratic", n, 2, d, 0.0f), linear(spec + ",form=linear", n, 2, d, 0.0f);
        const Result wanted = run(quadratic), got = run(linear);
        const auto compare = [&](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
          const std::vector<double> expected(b.begin(), b.end());
          const double magnitude = std::max(largest(expected), 1.0);
          expect_close(a, expected, tolerance(NumberType::kFloat32, n + 8 * d, magnitude), spec + " " + what);
        };
        compare(got.out, wanted.out, "out");
        compare(got.d_inputs, wanted.d_inputs, "d_inputs");
        for (size_t i = 0; i < wanted.d_parameters.size(); ++i) {
          compare(got.d_parameters[i], wanted.d_parameters[i], "gain");
        }
      }
    }
  }
}

// What a head learns of its gain may not be divided by it.
TEST(PolynomialLinear, GainOfZeroLearns) {
  Problem quadratic("polynomial:power=2,scale=n,gain=1,form=quadratic", 50, 2, 8, 0.0f);
  Problem linear("polynomial:power=2,scale=n,gain=1,form=linear", 50, 2, 8, 0.0f);
  quadratic.parameters[0] = linear.parameters[0] = {0.0f, 1.0f};
  const Result wanted = run(quadratic), got = run(linear);
  const std::vector<double> expected(wanted.d_parameters[0].begin(), wanted.d_parameters[0].end());
  ASSERT_GT(std::abs(expected[0]), 0.1);
  expect_close(got.d_parameters[0], expected, tolerance(NumberType::kFloat32, 50, largest(expected)), "gain");
}

TEST(PolynomialLinear, LeavesNoPlaceForDropout) {
  for (const char* spec : {"polynomial:power=1,form=linear", "polynomial:power=2,form=linear"}) {
    const Problem with(spec, 60, 2, 8, 0.5f), without(spec, 60, 2, 8, 0.0f);
    EXPECT_FALSE(with.kernel->dropout_applies());
    EXPECT_EQ(with.kernel->form(true, 0.1f), "linear");
    EXPECT_EQ(with.kernel->form(false, 0.0f), "linear");
    EXPECT_EQ(run(with).out, run(without).out);
    EXPECT_EQ(run(with).d_inputs, run(without).d_inputs);
  }
  EXPECT_TRUE(kernel_of("polynomial:power=1,form=quadratic")->dropout_applies());
  EXPECT_TRUE(kernel_of("polynomial:power=1")->dropout_applies());
}

// Products of F features: 2 forward, 4 backward, 2 N F D each.
TEST(PolynomialLinear, CountsItsProducts) {
  const double first = 2.0 * 100 * 32 * 32 * 2, second = 2.0 * 100 * 528 * 32 * 2;
  EXPECT_EQ(kernel_of("polynomial:power=1,form=linear")->flops(100, false, 0.0f), 2 * first);
  EXPECT_EQ(kernel_of("polynomial:power=1,form=linear")->flops(100, true, 0.3f), 6 * first);
  EXPECT_EQ(kernel_of("polynomial:power=2,form=linear")->flops(100, false, 0.0f), 2 * second);
  EXPECT_EQ(kernel_of("polynomial:power=2,form=linear")->flops(100, true, 0.3f), 6 * second);
  EXPECT_EQ(kernel_of("polynomial:power=2,form=linear")->dense_flops(100, true), 14.0 * 100 * 100 * 32 * 2);
}

// The forms differ in rounding: bits tell which one ran.
TEST(PolynomialAuto, TakesTheCheaperFormWhereItIsExact) {
  struct Case {
    const char* power;
    int64_t features;  // at D = 8
  };
  for (const auto& [power, features] :
       {Case{"polynomial:power=1,scale=sqrt", 8}, Case{"polynomial:power=2,scale=n", 36}}) {
    for (const float dropout : {0.0f, 0.3f}) {
      for (const int64_t n : {features, features + 1, int64_t{200}}) {
        const std::string spec = power;
        const Problem chosen(spec, n, 2, 8, dropout);
        const bool takes_linear = n > features && dropout == 0.0f;
        const Problem expected(spec + (takes_linear ? ",form=linear" : ",form=quadratic"), n, 2, 8, dropout);
        const Problem other(spec + (takes_linear ? ",form=quadratic" : ",form=linear"), n, 2, 8, dropout);
        const std::string what = spec + " N=" + std::to_string(n) + " dropout=" + std::to_string(dropout);
        const Result got = run(chosen), wanted = run(expected);
        EXPECT_EQ(got.out, wanted.out) << what;
        EXPECT_EQ(got.d_inputs, wanted.d_inputs) << what;
        EXPECT_NE(got.out, run(other).out) << what;
        EXPECT_EQ(chosen.kernel->saved_floats(n, dropout), expected.kernel->saved_floats(n, dropout)) << what;
        for (const bool training : {false, true}) {
          EXPECT_EQ(chosen.kernel->flops(n, training, dropout), expected.kernel->flops(n, training, dropout)) << what;
        }
      }
    }
  }
}

TEST(PolynomialAuto, SaysWhatItDoes) {
  for (const char* spec : {"polynomial:power=1", "polynomial:power=2", "polynomial:power=3"}) {
    EXPECT_EQ(kernel_of(spec)->form(true, 0.1f), "quadratic") << spec;
  }
  for (const bool training : {false, true}) {
    EXPECT_EQ(kernel_of("polynomial:power=1")->form(training, 0.0f), "linear above 32 tokens");
    EXPECT_EQ(kernel_of("polynomial:power=2")->form(training, 0.0f), "linear above 528 tokens");
    EXPECT_EQ(kernel_of("polynomial:power=3")->form(training, 0.0f), "quadratic");
    EXPECT_EQ(kernel_of("polynomial:power=2,form=quadratic")->form(training, 0.0f), "quadratic");
  }
}

TEST(PolynomialAuto, KeepsTheGain) {
  const std::unique_ptr<AttentionKernel> kernel = kernel_of("polynomial:power=1,gain=1");
  ASSERT_EQ(kernel->parameters().size(), 1u);
  EXPECT_EQ(kernel->parameters()[0].name, "gain");
  std::vector<float> gain(kernel->parameters()[0].size());
  Random random(1, RandomStream::kInit);
  kernel->parameters()[0].start(random, gain);
  EXPECT_EQ(gain, std::vector<float>(2, 1.0f));
}

}  // namespace
}  // namespace lra
