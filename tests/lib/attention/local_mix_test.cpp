// The local residual of InLine attention around another kernel: against its plain version and its central differences.
#include "lib/attention/local_mix.h"

#include <gtest/gtest.h>

#include "lib/util/check.h"
#include "tests/lib/attention/attention_problem.h"
#include "tests/support/compare.h"

namespace lra {
namespace {

constexpr const char* kInner = "polynomial:power=2,scale=n,gain=1,form=quadratic";

// Places with gaps, so that rows of pixels have holes.
Problem mixed(int64_t tokens, int width) {
  Problem p(kInner, tokens, 2, 8, 0.0f);
  p.kernel = add_local_mix(make_attention(p.spec, p.shape), width);
  Random random(3, RandomStream::kData);
  const auto& all = p.kernel->parameters();
  for (size_t i = p.parameters.size(); i < all.size(); ++i) {
    p.parameters.emplace_back(all[i].size());
    all[i].start(random, p.parameters.back());
  }
  return p;
}

DoubleProblem reference_of(const Problem& p, int width) {
  DoubleProblem problem(p);
  problem.reference = [inner = problem.reference, width](const ref::AttentionProblem& of) {
    ref::Row out = inner(of);
    ref::add_local_mix(of, 1, width, out);
    return out;
  };
  return problem;
}

TEST(LocalMix, AgreesWithReference) {
  for (const int width : {0, 1, 6, 1000}) {
    for (const int64_t n : {1, 2, 60}) {
      const Problem p = mixed(n, width);
      const Result got = run(p);
      DoubleProblem expected = reference_of(p, width);
      const ref::Row out = expected.out();
      const std::string what = "width " + std::to_string(width) + " N=" + std::to_string(n);
      const auto limit = [&](double magnitude) {
        return tolerance(NumberType::kFloat32, n + 64, std::max(magnitude, 1.0));
      };
      expect_close(got.out, out, limit(largest(out)), what);

      const double h = 1e-6;
      const auto compare = [&](std::vector<double>& at, const std::vector<float>& gradient, const std::string& name) {
        const double most = largest(gradient);
        for (size_t i = 0; i < at.size(); i += at.size() < 200 ? 1 : 37) {
          const double start = at[i];
          at[i] = start + h;
          const double above = expected.loss();
          at[i] = start - h;
          const double below = expected.loss();
          at[i] = start;
          ASSERT_NEAR(gradient[i], (above - below) / (2 * h), limit(most)) << what << " " << name << " " << i;
        }
      };
      compare(expected.inputs, got.d_inputs, "inputs");
      for (size_t t = 0; t < p.parameters.size(); ++t) {
        compare(expected.problem.parameters[t], got.d_parameters[t], p.kernel->parameters()[t].name);
      }
    }
  }
}

TEST(LocalMix, HasTheShapesOfTheCheckpoint) {
  const Problem p = mixed(3, 6);
  const auto& parameters = p.kernel->parameters();
  ASSERT_EQ(parameters.size(), 5u);
  EXPECT_EQ(parameters[1].name, "local_in.weight");
  EXPECT_EQ(parameters[1].shape, (std::vector<int64_t>{16, 8, 1}));
  EXPECT_EQ(parameters[3].name, "local_out.weight");
  EXPECT_EQ(parameters[3].shape, (std::vector<int64_t>{144, 8, 1}));
}

TEST(LocalMix, RefusesHeadsOfAnotherWidth) {
  const AttentionShape shape = {2, 8, 64, 24};
  EXPECT_THROW(add_local_mix(make_attention(parse_attention("softmax"), shape), 0), UsageError);
}

TEST(LocalMix, NoTokens) {
  const Result r = run(mixed(0, 0));
  for (const auto& d : r.d_parameters) {
    for (const float x : d) EXPECT_EQ(x, 0.0f);
  }
}

}  // namespace
}  // namespace lra
