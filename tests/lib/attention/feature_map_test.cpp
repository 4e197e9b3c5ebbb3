// What linear forms by feature maps and low rank promise beyond what every family does: chunks that fit together,
// random directions that are what they should be.
#include "lib/attention/feature_map.h"

#include <gtest/gtest.h>

#include "lib/attention/random_features.h"
#include "tests/lib/attention/against_reference.h"

namespace lra {
namespace {

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

}  // namespace
}  // namespace lra
