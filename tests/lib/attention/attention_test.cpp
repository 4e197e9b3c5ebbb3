// Every family and form against the plain reference in double, forward and backward, with and
// without dropout; the references' backward against central differences; and what a driver must keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/attention/families.h"
#include "lib/attention/random_features.h"
#include "lib/attention/tile_matmul.h"
#include "lib/attention/tiled_kernel.h"
#include "lib/ops/bfloat16.h"
#include "tests/lib/attention/attention_problem.h"
#include "tests/support/compare.h"
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

// What of a result is held to the reference: the error allowed to numbers like `wanted`. Scores err by the length of a
// head; a power multiplies that error, the sums over keys add theirs. Where terms of about 1 cancel (a softmax over one
// key), what is left of them counts.
double allowed(const Problem& p, double magnitude) {
  return tolerance(p.precision == Precision::kFloat32 ? NumberType::kFloat32 : NumberType::kBfloat16,
                   p.n + 8 * p.shape.head_dim, std::max(magnitude, 1.0));
}

// One number that the loss depends on, in double, and its gradient as computed.
struct Coordinate {
  double* at;
  float gradient;
  std::string name;
};

std::vector<Coordinate> coordinates(DoubleProblem& expected, const Problem& p, const Result& got) {
  std::vector<Coordinate> all;
  const char* const names[] = {"dq", "dk", "dv", "dx"};
  for (size_t i = 0; i < expected.inputs.size(); ++i) {
    const auto column = static_cast<int64_t>(i) % (4 * p.width());
    all.push_back({&expected.inputs[i], got.d_inputs[i], names[column / p.width()]});
  }
  for (size_t t = 0; t < got.d_parameters.size(); ++t) {
    if (!p.kernel->parameters()[t].trained) continue;
    for (size_t i = 0; i < got.d_parameters[t].size(); ++i) {
      all.push_back({&expected.problem.parameters[t][i], got.d_parameters[t][i], p.kernel->parameters()[t].name});
    }
  }
  return all;
}

// The gradient against central differences of the reference's loss: along some random directions through all
// coordinates, in which a single wrong number shows, and along some coordinates alone.
void expect_gradient(const Problem& p, const Result& got, int directions, int singles, const std::string& what) {
  const DoubleProblem constants(p);
  DoubleProblem expected(p);
  expected.problem.constants = &constants.problem;
  const std::vector<Coordinate> all = coordinates(expected, p, got);
  std::vector<double> start;
  double largest_gradient = 0.0;
  for (const Coordinate& c : all) {
    start.push_back(*c.at);
    ASSERT_TRUE(std::isfinite(c.gradient)) << what << " " << c.name;
    largest_gradient = std::max(largest_gradient, std::abs(static_cast<double>(c.gradient)));
  }
  Random random(7, RandomStream::kData);
  const double h = 1e-6;
  const auto slope = [&](const std::vector<std::pair<size_t, double>>& direction) {
    for (const auto& [i, step] : direction) *all[i].at = start[i] + h * step;
    const double above = expected.loss();
    for (const auto& [i, step] : direction) *all[i].at = start[i] - h * step;
    const double below = expected.loss();
    for (const auto& [i, step] : direction) *all[i].at = start[i];
    return (above - below) / (2 * h);
  };
  for (int number = 0; number < directions; ++number) {
    std::vector<std::pair<size_t, double>> direction;
    double along = 0.0;
    for (size_t i = 0; i < all.size(); ++i) {
      direction.emplace_back(i, random.normal());
      along += direction.back().second * all[i].gradient;
    }
    // Errors of the entries add up like a random walk.
    const double limit = allowed(p, largest_gradient) * std::sqrt(static_cast<double>(all.size()));
    ASSERT_NEAR(along, slope(direction), limit) << what << " direction " << number;
  }
  for (int number = 0; number < singles; ++number) {
    const size_t i = singles >= std::ssize(all) ? static_cast<size_t>(number) % all.size()
                                                : random.below(static_cast<uint32_t>(all.size()));
    ASSERT_NEAR(all[i].gradient, slope({{i, 1.0}}), allowed(p, largest_gradient))
        << what << " " << all[i].name << " entry " << i;
  }
}

void expect_reference(const Problem& p, int directions, int singles, const std::string& target) {
  const std::string what = p.spec.canonical() + " N=" + std::to_string(p.n) + " D=" + std::to_string(p.shape.head_dim) +
                           " dropout=" + std::to_string(p.dropout) + (p.training ? "" : " evaluation") + " on " +
                           target;
  const Result got = run(p);
  const std::vector<double> out = DoubleProblem(p).out();
  expect_close(got.out, out, allowed(p, largest(out)), what + " out");
  expect_gradient(p, got, directions, singles, what);
}

class AgainstReference : public testing::TestWithParam<std::string> {};

// Lengths around a vector, blocks of queries and tiles of keys.
TEST_P(AgainstReference, ForwardAndBackward) {
  const std::string& spec = GetParam();
  const auto on_each_target = [&](const Problem& p, int directions, int singles) {
    for_each_target([&](const std::string& target) { expect_reference(p, directions, singles, target); });
  };
  on_each_target(Problem(spec, 1, 2, 5, 0.0f), 1, 40);
  on_each_target(Problem(spec, 15, 2, 3, 0.0f), 1, 0);
  on_each_target(Problem(spec, 67, 1, 32, 0.3f), 2, 0);
  // Tiles are cut alike on all instruction sets.
  expect_reference(Problem(spec, 15, 2, 3, 0.0f), 2, 400, "the best instruction set");
  expect_reference(Problem(spec, 530, 2, 8, 0.0f), 3, 4, "the best instruction set");
  expect_reference(Problem(spec, 530, 1, 8, 0.3f), 3, 4, "the best instruction set");
  Problem evaluation(spec, 40, 2, 8, 0.0f);
  evaluation.training = false;
  expect_reference(evaluation, 1, 0, "the best instruction set");
}

INSTANTIATE_TEST_SUITE_P(Families, AgainstReference, testing::ValuesIn(all_specs()), [](const auto& info) {
  std::string name = parse_attention(info.param).slug();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

// Linear forms cut sequences into chunks of 96: lengths around one and two of them.
TEST(FeatureMaps, AgreeWithReferenceAroundChunks) {
  for (const AttentionFamily& family : attention_families()) {
    if (family.kind != "feature map" && family.kind != "low rank") continue;
    for (const std::string& spec : family.examples) {
      for (const int64_t n : {95, 96, 97, 192, 193}) {
        expect_reference(Problem(spec, n, 2, 7, 0.0f), 1, 2, "the best instruction set");
      }
    }
  }
}

// redraw=1 draws a step's directions in training, those of a layer for all examples, and has the stored ones in
// evaluation.
TEST(Favor, RedrawsAStepAndALayer) {
  Problem p("favor:features=16,redraw=1", 50, 2, 8, 0.0f);
  std::vector<const float*> pointers;
  AttentionInput in = p.input(pointers);
  const auto out = [&] {
    std::vector<float> y(p.n * p.width());
    Arena arena;
    p.kernel->forward(in, {y.data(), p.n, p.width()}, nullptr, arena);
    return y;
  };
  const std::vector<float> drawn = out();
  in.example = 9;
  EXPECT_EQ(out(), drawn);
  in.layer = kLayer + 1;
  EXPECT_NE(out(), drawn);
  in.layer = kLayer, in.dropout_key[1] += 1;
  EXPECT_NE(out(), drawn);
  in.training = false;
  const std::vector<float> stored = out();
  EXPECT_NE(stored, drawn);
  Problem fixed("favor:features=16", 50, 2, 8, 0.0f);
  fixed.parameters = p.parameters;
  EXPECT_EQ(run(fixed).out, stored);
}

// Rows in blocks of D orthogonal ones, as long as Gaussian vectors.
TEST(Favor, DirectionsAreOrthogonal) {
  constexpr int64_t kDim = 16, kRows = 40;
  std::vector<float> rows(kDim * kRows);
  Random random(1, RandomStream::kInit);
  start_orthogonal(kDim)(random, rows);
  double squares = 0.0;
  for (int64_t a = 0; a < kRows; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      double dot = 0.0;
      for (int64_t c = 0; c < kDim; ++c) dot += static_cast<double>(rows[a * kDim + c]) * rows[b * kDim + c];
      if (a == b) squares += dot;
      if (a != b && a / kDim == b / kDim) {
        EXPECT_NEAR(dot, 0.0, 1e-5);
      }
    }
  }
  EXPECT_NEAR(squares / kRows, kDim, 0.2 * kDim);
}

// Estimates of exp approach it as features grow in number.
TEST(RandomFeatures, ApproachSoftmax) {
  for (const char* family : {"favor", "hrf", "rmfa"}) {
    double errors[2] = {};
    for (int many = 0; many < 2; ++many) {
      Problem p(std::string(family) + (many == 0 ? ":features=64" : ":features=4096"), 40, 1, 8, 0.0f);
      for (float& x : p.inputs) x *= std::string(family) == "favor" ? 0.3f : 1.0f;
      Problem exact("softmax", 40, 1, 8, 0.0f);
      exact.inputs = p.inputs;
      const Result estimate = run(p), wanted = run(exact);
      for (size_t i = 0; i < wanted.out.size(); ++i) {
        errors[many] += std::pow(static_cast<double>(estimate.out[i]) - wanted.out[i], 2);
      }
    }
    EXPECT_LT(errors[1], errors[0] / 10.0) << family;
  }
}

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
          expect_reference(p, 1, 12, "AVX-512 BF16");
        }
      }
    }
  }
}

// Row i of a causal variant knows tokens 0 … i alone.
TEST(Causal, DoesNotSeeTheFuture) {
  for (const AttentionFamily& family : attention_families()) {
    if (!family.causal) continue;
    for (const int64_t n : {20, 600}) {
      const std::string spec = family.name + ":causal=1";
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
        ASSERT_EQ(std::ssize(row.weights), p.spec.flag("causal") ? row.query + 1 : p.n);
        for (size_t j = 0; j < row.weights.size(); ++j) {
          for (int64_t c = row.head * 8; c < (row.head + 1) * 8; ++c) {
            out[row.query * p.width() + c] +=
                static_cast<double>(row.weights[j]) * p.inputs[j * 4 * p.width() + 2 * p.width() + c];
          }
        }
      });
      const ref::Row wanted = DoubleProblem(p).out();
      std::vector<float> got(out.begin(), out.end());
      expect_close(got, wanted, allowed(p, largest(wanted)), text);
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
      if (!p.kernel->has_weights() || p.spec.xsa || !family.scores_are_dot_products(p.spec)) continue;
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
        EXPECT_NEAR(*row.jacobian_square, sum, 1e-4 * std::max(sum, 1e-2)) << text << " row " << row.query;
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
    const Problem p(text, 600, 2, 8, 0.1f);
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
