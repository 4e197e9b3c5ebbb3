// The whole path of a device against PyTorch: the fixtures whose attention has a kernel there.
#include <gtest/gtest.h>

#include <cstdio>

#include "lib/attention/registry.h"
#include "lib/device/attention.h"
#include "lib/util/check.h"
#include "tests/golden/cases.h"

namespace lra {
namespace {

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Case& c : kCases) {
    const ModelConfig config = config_of(Fixture(c.name), c);
    try {
      device::make_attention(parse_attention(config.attention),
                             {config.heads, config.head_dim(), config.padded_length, config.dim});
      all.push_back(c);
    } catch (const UsageError&) {
      // No kernel.
    }
  }
  return all;
}

class GoldenOnDevice : public testing::TestWithParam<Case> {};

TEST_P(GoldenOnDevice, MatchesPyTorch) {
  const Case& c = GetParam();
  Fixture fixture(c.name);
  const ModelConfig config = config_of(fixture, c);
  Classifier model(config);
  load_start(fixture, model);
  if (HasFatalFailure()) return;
  const std::vector<Example> examples = fixture.examples();
  const std::unique_ptr<BatchModel> device = make_batch_model(config, "float32");
  const std::vector<float> zeros(model.parameters().size());
  device->load(model.parameters(), zeros, zeros);
  Comparison comparison;
  FirstStep first;
  first.trained = device->train(examples, 1.0f / static_cast<float>(examples.size()), {});
  first.evaluated = device->evaluate(model.parameters(), examples);
  first.gradients = device->gradients();
  compare_first_step(fixture, model.layout(), first, comparison);
  compare_training(fixture, c, model, examples, comparison, device.get());
  std::printf("%s: worst error / tolerance %.3f (%s)\n", title(c).c_str(), comparison.worst(),
              comparison.where().c_str());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenOnDevice, testing::ValuesIn(cases()), test_name);

}  // namespace
}  // namespace lra
