// Every family and form against the plain reference in double, forward and backward, with and
// without dropout; the references' backward against central differences; and what a driver must keep.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <tuple>

#include "lib/attention/families.h"
#include "lib/attention/tile_matmul.h"
#include "lib/attention/tiled_kernel.h"
#include "lib/ops/bfloat16.h"
#include "tests/lib/attention/attention_problem.h"
#include "tests/support/compare.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

const char* const kSpecs[] = {"softmax",
                              "polynomial:power=1,scale=sqrt,form=quadratic",
                              "polynomial:power=1,scale=sqrt,form=linear",
                              "polynomial:power=1,scale=16,gain=1,form=linear",
                              "polynomial:power=2,scale=n,form=quadratic",
                              "polynomial:power=2,scale=n,gain=1,form=linear",
                              "polynomial:power=2,scale=moment,length=max,form=linear",
                              "polynomial:power=3,scale=16",
                              "polynomial:power=4,scale=moment",
                              "polynomial:power=5,scale=sqrt,length=max",
                              "polynomial:power=6,scale=moment,gain=1",
                              "polynomial:power=7,scale=n",
                              "polynomial:power=8,scale=1000"};

// (spec, tokens, head width, dropout): lengths around a vector, blocks of queries and tiles of keys.
using Case = std::tuple<const char*, int, int, float>;

class AgainstReference : public testing::TestWithParam<Case> {};

TEST_P(AgainstReference, ForwardAndBackward) {
  const char* const text = std::get<0>(GetParam());
  const int n = std::get<1>(GetParam()), d = std::get<2>(GetParam());
  const float dropout = std::get<3>(GetParam());
  const Problem p(text, n, 2, d, dropout);
  const DoubleProblem expected(p);
  const std::vector<double> out = ref::attention_forward(expected.problem);
  const auto gradients = ref::attention_backward(expected.problem, {expected.d_out.data(), n, p.width()});
  // Scores err by the length of a head; a power multiplies that error, the sums over keys add theirs.
  const int64_t length = n + 8 * d;
  const auto compare_on = [&](const std::string& target) {
    const std::string what = std::string(text) + " N=" + std::to_string(n) + " D=" + std::to_string(d) +
                             " dropout=" + std::to_string(dropout) + " on " + target;
    const Result got = run(p);
    expect_close(got.out, out, tolerance(NumberType::kFloat32, length, largest(out)), what + " out");
    const auto compare = [&](const std::vector<float>& actual, const std::vector<double>& wanted, const char* name) {
      // Where terms of about 1 cancel (a softmax over one key), what is left of them counts.
      const double magnitude = std::max(largest(wanted), 1.0);
      expect_close(actual, wanted, tolerance(NumberType::kFloat32, length, magnitude), what + " " + name);
    };
    compare(columns(got.d_qkv, n, p.width(), 0), gradients.dq, "dq");
    compare(columns(got.d_qkv, n, p.width(), 1), gradients.dk, "dk");
    compare(columns(got.d_qkv, n, p.width(), 2), gradients.dv, "dv");
    for (size_t i = 0; i < gradients.d_parameters.size(); ++i) {
      compare(got.d_parameters[i], gradients.d_parameters[i], p.kernel->parameters()[i].name.c_str());
    }
  };
  if (n < 200) {
    for_each_target(compare_on);
  } else {  // tiles are cut alike on all of them, and the plain ones take seconds
    compare_on("the best instruction set");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, AgainstReference,
                         testing::Combine(testing::ValuesIn(kSpecs), testing::Values(1, 15, 97, 530),
                                          testing::Values(5, 32), testing::Values(0.0f, 0.3f)));

// The products in bfloat16; its tolerance is that of rounded weights, which large powers of scores multiply.
TEST(Bfloat16, AgreesWithReference) {
  if (!bfloat16_supported()) GTEST_SKIP() << "this processor has no AVX-512 BF16";
  for (const char* text : {"softmax", "polynomial:power=1,scale=sqrt,form=quadratic", "polynomial:power=3,scale=16"}) {
    for (const int64_t n : {1, 15, 97, 531}) {
      for (const int d : {5, 32}) {
        for (const float dropout : {0.0f, 0.3f}) {
          if (n > 500 && (d == 5 || dropout == 0.0f)) continue;
          Problem p(text, n, 2, d, dropout);
          p.precision = Precision::kBfloat16;
          const Result got = run(p);
          const DoubleProblem expected(p);
          const auto gradients = ref::attention_backward(expected.problem, {expected.d_out.data(), n, p.width()});
          const auto compare = [&](const std::vector<float>& actual, const std::vector<double>& wanted,
                                   const char* name) {
            const double magnitude = std::max(largest(wanted), 1.0);
            expect_close(actual, wanted, tolerance(NumberType::kBfloat16, n, magnitude),
                         std::string(text) + " N=" + std::to_string(n) + " " + name);
          };
          compare(got.out, ref::attention_forward(expected.problem), "out");
          compare(columns(got.d_qkv, n, p.width(), 0), gradients.dq, "dq");
          compare(columns(got.d_qkv, n, p.width(), 1), gradients.dk, "dk");
          compare(columns(got.d_qkv, n, p.width(), 2), gradients.dv, "dv");
        }
      }
    }
  }
}

// d(sum of out * d_out) by central differences in double.
TEST(AttentionReference, BackwardIsTheDerivativeOfForward) {
  for (const char* text : kSpecs) {
    for (const float dropout : {0.0f, 0.3f}) {
      const Problem p(text, 9, 2, 3, dropout);
      DoubleProblem problem(p);
      const auto loss = [&] {
        const std::vector<double> out = ref::attention_forward(problem.problem);
        return std::inner_product(out.begin(), out.end(), problem.d_out.begin(), 0.0);
      };
      const auto gradients = ref::attention_backward(problem.problem, {problem.d_out.data(), p.n, p.width()});
      const auto slope = [&](double& x) {
        const double h = 1e-5, start = x;
        x = start + h;
        const double above = loss();
        x = start - h;
        const double below = loss();
        x = start;
        return (above - below) / (2 * h);
      };
      const std::vector<double>* parts[] = {&gradients.dq, &gradients.dk, &gradients.dv};
      for (int64_t i = 0; i < p.n; ++i) {
        for (int64_t c = 0; c < 3 * p.width(); ++c) {
          const double wanted = slope(problem.qkv[i * 3 * p.width() + c]);
          const double got = (*parts[c / p.width()])[i * p.width() + c % p.width()];
          ASSERT_NEAR(got, wanted, 1e-7 * std::max(1.0, std::abs(wanted))) << text << " row " << i << " column " << c;
        }
      }
      for (size_t i = 0; i < problem.problem.parameters.size(); ++i) {
        for (size_t c = 0; c < problem.problem.parameters[i].size(); ++c) {
          const double wanted = slope(problem.problem.parameters[i][c]);
          ASSERT_NEAR(gradients.d_parameters[i][c], wanted, 1e-7 * std::max(1.0, std::abs(wanted))) << text;
        }
      }
    }
  }
}

TEST(AttentionDriver, NoTokens) {
  for (const char* text : kSpecs) {
    const Problem p(text, 0, 2, 8, 0.1f);
    const Result r = run(p);
    EXPECT_TRUE(r.out.empty());
    for (const auto& d : r.d_parameters) {
      for (const float x : d) EXPECT_EQ(x, 0.0f);
    }
  }
}

TEST(AttentionDriver, SameBitsWithAndWithoutSavingAndOnDirtyScratch) {
  for (const char* text :
       {"softmax", "polynomial", "polynomial:power=1,form=linear", "polynomial:power=2,form=linear"}) {
    const Problem p(text, 600, 2, 32, 0.1f);
    const Result first = run(p);
    std::vector<const float*> pointers;
    const AttentionInput in = p.input(pointers);
    Arena arena;
    float* dirty = arena.floats(1 << 20);
    std::fill_n(dirty, 1 << 20, NAN);
    arena.reset();
    std::vector<float> out(p.n * p.width());
    p.kernel->forward(in, {out.data(), p.n, p.width()}, nullptr, arena);
    EXPECT_EQ(out, first.out) << text;
  }
}

// Runs the parts backwards, each with scratch full of NaN.
class BackwardsFork final : public Fork {
 public:
  void run(int64_t n, const std::function<void(int64_t, Arena&)>& body) const override {
    for (int64_t i = n - 1; i >= 0; --i) {
      Arena arena;
      std::fill_n(arena.floats(1 << 20), 1 << 20, NAN);
      arena.reset();
      body(i, arena);
    }
  }
};

TEST(AttentionDriver, SameBitsInParts) {
  const BackwardsFork fork;
  for (const char* text : {"softmax", "polynomial:power=3,scale=sqrt,gain=1", "polynomial:power=1,gain=1,form=linear",
                           "polynomial:power=2,gain=1,form=linear"}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      if (precision == Precision::kBfloat16 && !bfloat16_supported()) continue;
      for (const int64_t n : {0, 1, 100, 1100, 8200}) {  // the last: masks are not saved, more tiles than a group
        if (n > 1100 && (std::string(text) == "softmax" || precision == Precision::kBfloat16)) continue;
        Problem p(text, n, 2, 8, 0.1f);
        p.precision = precision;
        const Result whole = run(p);
        p.fork = &fork;
        const Result parts = run(p);
        EXPECT_EQ(parts.out, whole.out) << text << " N=" << n;
        EXPECT_EQ(parts.d_qkv, whole.d_qkv) << text << " N=" << n;
        EXPECT_EQ(parts.d_parameters, whole.d_parameters) << text << " N=" << n;
      }
    }
  }
}

// A score far from the others must not overflow softmax or lose its row.
TEST(Softmax, LargeScores) {
  Problem p("softmax", 70, 1, 4, 0.0f);
  for (float& x : p.qkv) x *= 100.0f;
  const Result got = run(p);
  const DoubleProblem expected(p);
  const std::vector<double> out = ref::attention_forward(expected.problem);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(got.out[i], out[i], 0.05 * largest(out));
  for (const float x : got.d_qkv) ASSERT_TRUE(std::isfinite(x));
}

// polynomial:power=2,scale=n as a family that asks for whole rows.
class WholeRows final : public ScoreActivation {
 public:
  bool whole_rows() const override { return true; }
  int statistics() const override { return 1; }
  void forward(const ScoreTile& tile, float*, float*) const override {
    EXPECT_EQ(tile.key, 0);
    EXPECT_EQ(tile.s.cols, tile.keys);
    for_each_entry(
        tile, [](float& x, bool kept, float) { x = kept ? x * x : 0.0f; }, tile.s);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override {
    std::fill_n(statistics, rows.s.rows, 1.0f / static_cast<float>(rows.keys));
  }
  void backward(const ScoreTile& tile, const float*, const float*, Matrix gradients,
                std::span<float* const>) const override {
    EXPECT_EQ(tile.s.cols, tile.keys);
    for_each_entry(
        tile,
        [](float& x, bool kept, float& g) {
          g *= kept ? 2.0f * x : 0.0f;
          x *= kept ? x : 0.0f;
        },
        gradients);
  }

 private:
  template <class Body>
  static void for_each_entry(const ScoreTile& tile, const Body& body, Matrix gradients) {
    for (int64_t i = 0; i < tile.s.rows; ++i) {
      const uint8_t* kept = tile.row_kept(i);
      for (int64_t j = 0; j < tile.s.cols; ++j) {
        body(tile.s.row(i)[j], kept == nullptr || (kept[j / 8] >> (j % 8) & 1) != 0, gradients.row(i)[j]);
      }
    }
  }
};

TEST(AttentionDriver, WholeRowsGiveWhatPiecesGive) {
  for (const int64_t n : {1, 100, 700}) {
    for (const float dropout : {0.0f, 0.2f}) {
      Problem p("polynomial:power=2,scale=n,form=quadratic", n, 2, 32, dropout);
      const Result pieces = run(p);
      p.kernel =
          std::make_unique<TiledKernel>(p.shape, p.spec, std::vector<KernelParameter>(), std::make_unique<WholeRows>());
      const Result whole = run(p);
      const auto compare = [&](const std::vector<float>& actual, const std::vector<float>& wanted, const char* name) {
        const std::vector<double> expected(wanted.begin(), wanted.end());
        expect_close(actual, expected, tolerance(NumberType::kFloat32, n, std::max(largest(expected), 1.0)), name);
      };
      compare(whole.out, pieces.out, "out");
      compare(whole.d_qkv, pieces.d_qkv, "d_qkv");
    }
  }
}

// Sizes may depend on nothing but the length, else threads or machines would change results.
TEST(AttentionDriver, TilesAreAFunctionOfTheLength) {
  const TiledKernel kernel({2, 32, 512, 64}, parse_attention("softmax"), {}, std::make_unique<WholeRows>());
  for (const int64_t n : {1, 1000, 4096, 10000, 65536}) {
    const TiledKernel::Sizes sizes = kernel.sizes(n);
    EXPECT_EQ(sizes.keys, n);
    EXPECT_EQ(sizes.queries % kTileRows, 0);
    EXPECT_GE(sizes.queries, kTileRows);
    EXPECT_LE(sizes.queries * n, std::max<int64_t>(48 * 2048, kTileRows * n));
  }
}

TEST(Attention, CountsItsProducts) {
  const Problem p("softmax", 10, 2, 32, 0.0f);
  EXPECT_EQ(p.kernel->flops(100, true, 0.1f), 14.0 * 100 * 100 * 32 * 2);
  EXPECT_EQ(p.kernel->flops(100, false, 0.0f), 4.0 * 100 * 100 * 32 * 2);
}

TEST(Polynomial, Moments) {
  // (2q-1)!! for wide heads, its square for D = 1; and the values the specification states for D = 32.
  const double odd[] = {1, 3, 15, 105, 945, 10395};
  for (int q = 1; q <= 6; ++q) {
    EXPECT_NEAR(polynomial_moment(q, 1 << 30) / odd[q - 1], 1.0, 1e-6);
    EXPECT_NEAR(polynomial_moment(q, 1) / (odd[q - 1] * odd[q - 1]), 1.0, 1e-12);
  }
  EXPECT_NEAR(polynomial_moment(2, 32), 3.1875, 1e-12);
  EXPECT_NEAR(polynomial_moment(3, 32), 17.9296875, 1e-12);
}

}  // namespace
}  // namespace lra
