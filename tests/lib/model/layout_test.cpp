// Names and shapes of the parameters against PyTorch's state_dict(), recorded in state_dict_names.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "lib/model/classifier.h"

namespace lra {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

std::map<std::string, Shapes> recorded() {
  std::map<std::string, Shapes> cases;
  std::ifstream file(std::string(LRA_SOURCE_DIR) + "/tests/lib/model/state_dict_names.txt");
  std::string line, current;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "=") {
      words >> current;
    } else if (name != "#" && !current.empty()) {
      auto& shape = cases[current][name];
      for (int64_t extent; words >> extent;) shape.push_back(extent);
    }
  }
  return cases;
}

ModelConfig lra_config() {
  ModelConfig config;
  config.attention_bias = false;
  config.positions = "sinusoidal";
  config.pooling = "cls-vector";
  config.pair_head = "two";
  config.init = "lra";
  config.layers = 1;
  return config;
}

std::map<std::string, ModelConfig> configurations() {
  std::map<std::string, ModelConfig> configs;
  configs["listops-nystromformer"] = {};

  ModelConfig& retrieval = configs["retrieval-nystromformer"];
  retrieval.vocabulary = 512, retrieval.classes = 2, retrieval.padded_length = 4096, retrieval.pair = true;

  ModelConfig& text = configs["text-cls"];
  text.vocabulary = 512, text.classes = 2, text.padded_length = 4096, text.pooling = "cls", text.layers = 1;

  ModelConfig& pair = configs["retrieval-lra"] = lra_config();
  pair.vocabulary = 512, pair.classes = 2, pair.padded_length = 4096, pair.pair = true;
  pair.dim = pair.qkv_dim = 128, pair.hidden = 512, pair.heads = 4;

  ModelConfig& image = configs["image-lra"] = lra_config();
  image.vocabulary = 512, image.max_length = image.padded_length = 1024, image.positions = "learned";
  image.dim = 128, image.qkv_dim = 64, image.hidden = 128, image.heads = 8;

  ModelConfig& pathfinder = configs["pathfinder-lra"] = lra_config();
  pathfinder.vocabulary = 512, pathfinder.classes = 2, pathfinder.max_length = pathfinder.padded_length = 1024;
  pathfinder.dim = 32, pathfinder.qkv_dim = 16, pathfinder.hidden = 32, pathfinder.heads = 4, pathfinder.layers = 2;
  pathfinder.pooling = "mean";
  return configs;
}

TEST(Layout, NamesAndShapesArePyTorchs) {
  const auto cases = recorded();
  const auto configs = configurations();
  ASSERT_EQ(cases.size(), configs.size());
  for (const auto& [name, config] : configs) {
    const Classifier model(config);
    Shapes ours;
    for (const ParameterInfo& info : model.layout().all()) ours[info.name] = info.shape;
    ASSERT_TRUE(cases.contains(name)) << name;
    EXPECT_EQ(ours, cases.at(name)) << name;
  }
}

TEST(Layout, TensorsFollowOneAnotherWithoutGaps) {
  const Classifier model{ModelConfig()};
  int64_t next = 0;
  for (const ParameterInfo& info : model.layout().all()) {
    EXPECT_EQ(info.offset, next) << info.name;
    int64_t size = 1;
    for (const int64_t extent : info.shape) size *= extent;
    EXPECT_EQ(info.size, size) << info.name;
    next += info.size;
  }
  EXPECT_EQ(model.layout().size(), next);
  EXPECT_EQ(static_cast<int64_t>(model.parameters().size()), next);
}

TEST(Layout, SharedTensorsHaveSeveralNames) {
  ParameterLayout layout;
  layout.add("a", {2, 3});
  const int64_t b = layout.add("b", {4});
  EXPECT_EQ(layout.share("b", "c"), b);
  EXPECT_EQ(layout.size(), 10);
  EXPECT_EQ(layout.at("c").name, "b");
  EXPECT_EQ(layout.at("b").also, std::vector<std::string>{"c"});
  EXPECT_THROW(layout.add("c", {1}), std::logic_error);
  EXPECT_THROW(layout.at("d"), std::logic_error);
}

}  // namespace
}  // namespace lra
