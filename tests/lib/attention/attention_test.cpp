// Every family and form against the plain reference in double, forward and backward, with and
// without dropout; the references' backward against central differences; and what a driver must keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/attention/families.h"
#include "lib/attention/tile_matmul.h"
#include "lib/attention/tiled_kernel.h"
#include "lib/ops/bfloat16.h"
#include "tests/lib/attention/against_reference.h"
#include "tests/support/compare.h"
#include "tests/support/sanitized.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

std::vector<std::string> all_specs() {
  std::vector<std::string> specs;
  for (const AttentionFamily& family : attention_families()) {
    specs.insert(specs.end(), family.examples.begin(), family.examples.end());
  }
  return specs;
}

bool slow_reference(const std::string& spec) {
  const std::string name = parse_attention(spec).name;
  return std::ranges::any_of(attention_families(),
                             [&](const AttentionFamily& f) { return f.name == name && f.slow_reference; });
}

class AgainstReference : public testing::TestWithParam<std::string> {};

// Lengths around a vector, blocks of queries and tiles of keys.
TEST_P(AgainstReference, ForwardAndBackward) {
  const std::string& spec = GetParam();
  // Under a sanitizer the code runs, and gradients are left to the other builds.
  const auto on_each_target = [&](const Problem& p, int directions, int singles) {
    for_each_target([&](const std::string& target) {
      expect_reference(p, kSanitized ? 0 : directions, kSanitized ? 0 : singles, target);
    });
  };
  // One token without its own value has nothing that a norm could divide.
  const Problem single(spec, 1, 2, 5, 0.0f);
  if (!single.spec.xsa) on_each_target(single, 1, 40);
  on_each_target(Problem(spec, 15, 2, 3, 0.0f), 1, 0);
  on_each_target(Problem(spec, 67, 1, 32, 0.3f), 2, 0);
  // Tiles are cut alike on all instruction sets.
  const bool slow = slow_reference(spec);
  if (kSanitized) {
    if (!slow) run(Problem(spec, 530, 2, 8, 0.3f));
    return;
  }
  expect_reference(Problem(spec, 15, 2, 3, 0.0f), 2, 400, "the best instruction set");
  if (!slow) {
    expect_reference(Problem(spec, 530, 2, 8, 0.0f), 2, 2, "the best instruction set");
    expect_reference(Problem(spec, 530, 1, 8, 0.3f), 2, 2, "the best instruction set");
  }
  Problem evaluation(spec, 40, 2, 8, 0.0f);
  evaluation.training = false;
  expect_reference(evaluation, 0, 0, "the best instruction set");
}

INSTANTIATE_TEST_SUITE_P(Families, AgainstReference, testing::ValuesIn(all_specs()), [](const auto& info) {
  std::string name = parse_attention(info.param).slug();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

// The products in bfloat16; its tolerance is that of rounded weights, which large powers of scores multiply.
TEST(Bfloat16, AgreesWithReference) {
  if (!bfloat16_supported()) GTEST_SKIP() << "this processor has no AVX-512 BF16";
  for (const char* text : {"softmax", "ssmax:bias=1", "sigmoid:learnable=1",
                           "polynomial:power=1,scale=sqrt,form=quadratic", "polynomial:power=3,scale=16"}) {
    for (const int64_t n : {1, 15, 97, 531}) {
      for (const int d : {5, 32}) {
        for (const float dropout : {0.0f, 0.3f}) {
          if (n > 500 && (d == 5 || dropout == 0.0f)) continue;
          Problem p(text, n, 2, d, dropout);
          p.precision = Precision::kBfloat16;
          expect_reference(p, kSanitized ? 0 : 1, kSanitized ? 0 : 12, "AVX-512 BF16");
        }
      }
    }
  }
}

// Row i of a causal variant knows tokens 0 … i alone.
TEST(Causal, DoesNotSeeTheFuture) {
  std::vector<std::string> specs = {"polynomial:power=1,form=linear,causal=1",
                                    "polynomial:power=2,form=linear,causal=1", "nap:form=linear,causal=1",
                                    "inline:form=linear,causal=1"};
  for (const AttentionFamily& family : attention_families()) {
    if (family.causal) specs.push_back(family.name + ":causal=1");
  }
  for (const std::string& spec : specs) {
    for (const int64_t n : {20, 600}) {
      Problem p(spec, n, 2, 8, 0.0f);
      const Result before = run(p);
      const int64_t cut = n * 2 / 3;
      for (int64_t i = cut; i < n; ++i) {
        for (int64_t c = 0; c < 4 * p.width(); ++c) p.inputs[i * 4 * p.width() + c] += 1.0f;
      }
      const Result after = run(p);
      EXPECT_TRUE(std::equal(before.out.begin(), before.out.begin() + cut * p.width(), after.out.begin())) << spec;
      EXPECT_NE(before.out, after.out) << spec;
    }
  }
}

// visit_weights gives the P whose product with V the output is.
TEST(Weights, AreThoseOfTheOutput) {
  for (const AttentionFamily& family : attention_families()) {
    if (family.finish) continue;
    for (const std::string& text : family.examples) {
      Problem p(text, 30, 2, 8, 0.0f);
      p.training = false;
      if (!p.kernel->has_weights() || p.spec.xsa || family.convolves(p.spec)) continue;
      std::vector<const float*> pointers;
      Arena arena;
      ref::Row out(p.n * p.width(), 0.0);
      p.kernel->visit_weights(p.input(pointers), arena, [&](const WeightRow& row) {
        ASSERT_EQ(std::ssize(row.weights), p.spec.flag("causal") || family.name == "fox" ? row.query + 1 : p.n);
        for (size_t j = 0; j < row.weights.size(); ++j) {
          for (int64_t c = row.head * 8; c < (row.head + 1) * 8; ++c) {
            out[row.query * p.width() + c] +=
                static_cast<double>(row.weights[j]) * p.inputs[j * 4 * p.width() + 2 * p.width() + c];
          }
        }
      });
      const ref::Row wanted = DoubleProblem(p).out();
      std::vector<float> got(out.begin(), out.end());
      expect_close(got, wanted, 4 * allowed(p, largest(wanted)), text);  // some rows are ill-conditioned
    }
  }
}

// The Jacobian of a row of weights by its scores against central differences of the reference: keys and values along
// the axes make entry j of the query a multiple of score j, and entry j of the output weight j.
TEST(Weights, JacobianSquares) {
  for (const AttentionFamily& family : attention_families()) {
    if (family.finish) continue;
    for (const std::string& text : family.examples) {
      constexpr int64_t kTokens = 9, kDim = 12;
      Problem p(text, kTokens, 1, kDim, 0.0f);
      p.training = false;
      if (!p.kernel->has_weights() || p.spec.xsa || !family.plain_scores(p.spec)) continue;
      for (int64_t i = 0; i < kTokens; ++i) {
        float* row = p.inputs.data() + i * 4 * kDim;
        std::fill(row + kDim, row + 3 * kDim, 0.0f);
        row[kDim + i] = 3.0f, row[2 * kDim + i] = 1.0f;
      }
      DoubleProblem expected(p);
      std::vector<const float*> pointers;
      Arena arena;
      int compared = 0;
      p.kernel->visit_weights(p.input(pointers), arena, [&](const WeightRow& row) {
        if (!row.jacobian_square.has_value()) return;
        double sum = 0.0;
        for (size_t j = 0; j < row.weights.size(); ++j) {
          double& q = expected.inputs[row.query * 4 * kDim + j];
          const double start = q, h = 1e-6, scores_per_q = row.scores[j] / start;
          q = start + h;
          const ref::Row above = expected.out();
          q = start - h;
          const ref::Row below = expected.out();
          q = start;
          for (size_t k = 0; k < row.weights.size(); ++k) {
            const double slope = (above[row.query * kDim + k] - below[row.query * kDim + k]) / (2 * h * scores_per_q);
            sum += slope * slope;
          }
        }
        EXPECT_NEAR(*row.jacobian_square, sum, 2e-3 * std::max(sum, 1e-2)) << text << " row " << row.query;
        ++compared;
      });
      EXPECT_EQ(compared, family.jacobian ? kTokens : 0) << text;
    }
  }
}

TEST(AttentionDriver, NoTokens) {
  for (const std::string& text : all_specs()) {
    const Problem p(text, 0, 2, 8, 0.1f);
    const Result r = run(p);
    EXPECT_TRUE(r.out.empty());
    for (const auto& d : r.d_parameters) {
      for (const float x : d) EXPECT_EQ(x, 0.0f);
    }
  }
}

TEST(AttentionDriver, SameBitsWithAndWithoutSavingAndOnDirtyScratch) {
  for (const std::string& text : all_specs()) {
    const Problem p(text, kSanitized ? 200 : 600, 2, 8, 0.1f);
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
      std::fill_n(arena.floats(1 << 17), 1 << 17, NAN);
      arena.reset();
      body(i, arena);
    }
  }
};

TEST(AttentionDriver, SameBitsInParts) {
  const BackwardsFork fork;
  const auto compare = [&](Problem& p) {
    const Result whole = run(p);
    p.fork = &fork;
    const Result parts = run(p);
    EXPECT_EQ(parts.out, whole.out) << p.spec.canonical() << " N=" << p.n;
    EXPECT_EQ(parts.d_inputs, whole.d_inputs) << p.spec.canonical() << " N=" << p.n;
    EXPECT_EQ(parts.d_parameters, whole.d_parameters) << p.spec.canonical() << " N=" << p.n;
  };
  for (const std::string& text : all_specs()) {
    for (const int64_t n : {0, 1, 100, 600}) {
      if (kSanitized && n == 600 && text != "fox-bi") continue;
      Problem p(text, n, 2, 8, 0.1f);
      compare(p);
    }
  }
  for (const char* text : {"softmax", "polynomial:power=3,scale=sqrt,gain=1"}) {
    for (const int64_t n : {0, 1, 100, 1100}) {
      if (!bfloat16_supported()) continue;
      Problem p(text, n, 2, 8, 0.1f);
      p.precision = Precision::kBfloat16;
      compare(p);
    }
  }
  if (kSanitized) return;
  Problem many("polynomial:power=3,scale=sqrt,gain=1", 8200, 2, 8,
               0.1f);  // masks are not saved, more tiles than a group
  compare(many);
}

// A score far from the others must not overflow softmax or lose its row.
TEST(Softmax, LargeScores) {
  Problem p("softmax", 70, 1, 4, 0.0f);
  for (float& x : p.inputs) x *= 100.0f;
  const Result got = run(p);
  const std::vector<double> out = DoubleProblem(p).out();
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(got.out[i], out[i], 0.05 * largest(out));
  for (const float x : got.d_inputs) ASSERT_TRUE(std::isfinite(x));
}

// polynomial:power=2,scale=n as a family that asks for whole rows.
class WholeRows final : public ScoreActivation {
 public:
  bool whole_rows() const override { return true; }
  int statistics() const override { return 1; }
  void forward(const ScoreTile& tile, float*, float*) const override {
    EXPECT_EQ(tile.key, 0);
    EXPECT_EQ(tile.s.cols, tile.tokens);
    for_each_entry(
        tile, [](float& x, bool kept, float) { x = kept ? x * x : 0.0f; }, tile.s);
  }
  void forward_end(const ScoreTile& rows, float* statistics) const override {
    std::fill_n(statistics, rows.s.rows, 1.0f / static_cast<float>(rows.tokens));
  }
  void backward(const ScoreTile& tile, const float*, const float*, Matrix gradients,
                const RowGradients&) const override {
    EXPECT_EQ(tile.s.cols, tile.tokens);
    for_each_entry(
        tile,
        [](float& x, bool kept, float& g) {
          g *= kept ? 2.0f * x : 0.0f;
          x *= kept ? x : 0.0f;
        },
        gradients);
  }
  std::optional<double> jacobian_square(const ScoreTile&, int64_t, const float*, const float*) const override {
    return std::nullopt;
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
      compare(whole.d_inputs, pieces.d_inputs, "d_inputs");
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
