// The whole path against PyTorch: logits, loss, every gradient, ten losses and the parameters after ten updates,
// through the classes that training uses. A new fixture is one line of cases.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/golden/cases.h"

namespace lra {
namespace {

// Logits, loss and gradients of the first step, and the logits of evaluation.
void compare_gradients(Fixture& fixture, const Classifier& model, const std::vector<Example>& examples,
                       Comparison& comparison) {
  FirstStep first;
  first.gradients.resize(model.parameters().size());
  const float weight = 1.0f / static_cast<float>(examples.size());
  Arena arena;
  for (const Example& example : examples) {
    first.trained.push_back(model.train(example, weight, {}, first.gradients, arena));
    first.evaluated.push_back(model.evaluate(example, arena));
  }
  compare_first_step(fixture, model.layout(), first, comparison);
}

// Squares of the norms of P and of its Jacobian, (layers, heads, B) as the fixtures have them.
class NormSquares final : public AttentionObserver {
 public:
  NormSquares(const ModelConfig& config, size_t examples)
      : heads_(config.heads),
        examples_(static_cast<int64_t>(examples)),
        frobenius_(config.layers * heads_ * examples_),
        jacobian_(frobenius_.size()) {}

  void next(int64_t example) { example_ = example; }
  void attention(const AttentionKernel& kernel, const AttentionInput& in, Arena& arena) override {
    if (!kernel.has_weights()) return;
    kernel.visit_weights(in, arena, [&](const WeightRow& row) {
      const auto at = static_cast<size_t>((in.layer * heads_ + row.head) * examples_ + example_);
      for (const float p : row.weights) frobenius_[at] += static_cast<double>(p) * p;
      jacobian_[at] += row.jacobian_square.value_or(NAN);
    });
  }
  static std::vector<float> roots(const std::vector<double>& squares) {
    std::vector<float> roots(squares.size());
    std::ranges::transform(squares, roots.begin(), [](double x) { return static_cast<float>(std::sqrt(x)); });
    return roots;
  }
  std::vector<float> frobenius() const { return roots(frobenius_); }
  std::vector<float> jacobian() const { return roots(jacobian_); }

 private:
  int64_t heads_, examples_, example_ = 0;
  std::vector<double> frobenius_, jacobian_;
};

void compare_norms(Fixture& fixture, const Case& c, const Classifier& model, const std::vector<Example>& examples,
                   Comparison& comparison) {
  if (!fixture.has("norms.frobenius")) return;
  NormSquares norms(model.config(), examples.size());
  Arena arena;
  for (size_t i = 0; i < examples.size(); ++i) {
    norms.next(static_cast<int64_t>(i));
    model.evaluate(examples[i], arena, nullptr, &norms);
  }
  const auto compare = [&](const char* name, const std::vector<float>& got) {
    const std::span<const float> wanted = fixture.floats(name);
    ASSERT_EQ(got.size(), wanted.size()) << name;
    const double relative = std::max(c.norms, fixture.tolerance("norms_relative"));
    for (size_t i = 0; i < got.size(); ++i) {
      comparison.expect(name, std::span(got).subspan(i, 1), wanted.subspan(i, 1),
                        std::max(1e-6, relative * (1e-3 + std::abs(static_cast<double>(wanted[i])))));
    }
  };
  compare("norms.frobenius", norms.frobenius());
  if (fixture.has("norms.jacobian")) compare("norms.jacobian", norms.jacobian());
}

class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, MatchesPyTorch) {
  const Case& c = GetParam();
  Fixture fixture(c.name);
  Classifier model(config_of(fixture, c));
  load_start(fixture, model);
  if (HasFatalFailure()) return;
  const std::vector<Example> examples = fixture.examples();
  Comparison comparison;
  compare_gradients(fixture, model, examples, comparison);
  compare_norms(fixture, c, model, examples, comparison);
  compare_training(fixture, c, model, examples, comparison);
  EXPECT_EQ(fixture.unread(), std::vector<std::string>());
  std::printf("%s: worst error / tolerance %.3f (%s)\n", title(c).c_str(), comparison.worst(),
              comparison.where().c_str());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Golden, testing::ValuesIn(kCases), test_name);

}  // namespace
}  // namespace lra
