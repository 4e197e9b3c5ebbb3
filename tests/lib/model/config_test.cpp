// The model's configuration: JSON there and back, and a line that names the field for each wrong value.
#include "lib/model/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "lib/util/check.h"
#include "tests/support/models.h"

namespace lra {
namespace {

template <class E>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(ModelConfig, JsonThereAndBack) {
  ModelConfig config = small_config();
  config.pair = true;
  config.attention = "polynomial:power=3,scale=16";
  config.gelu = Gelu::kTanh;
  config.norm_epsilon = 1e-6f;
  config.dropout = 0.3f;
  config.pixel_tokens = "raw";
  EXPECT_EQ(ModelConfig::from_json(config.to_json()), config);
  EXPECT_NE(ModelConfig::from_json(config.to_json()), small_config());
}

TEST(ModelConfig, JsonWritesRatesAsTyped) {
  const std::string text = dump_json(small_config().to_json());
  EXPECT_NE(text.find("\"dropout\":0.1,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"norm_epsilon\":1e-05,"), std::string::npos) << text;
}

TEST(ModelConfig, JsonErrorsNameTheKey) {
  const auto message = [](const std::function<void(Json&)>& change) {
    Json json = small_config().to_json();
    change(json);
    return message_of<InputError>([&] { ModelConfig::from_json(json); });
  };
  EXPECT_EQ(message([](Json& j) { j.erase("heads"); }), "model configuration: key \"heads\" is missing");
  EXPECT_EQ(message([](Json& j) { j["head"] = 2; }), "model configuration: unknown key \"head\"");
  EXPECT_EQ(message([](Json& j) { j["dim"] = 16.5; }), "model configuration: \"dim\" is 16.5, must be an integer");
  EXPECT_EQ(message([](Json& j) { j["gelu"] = "fast"; }),
            "model configuration: \"gelu\" is \"fast\", must be \"exact\" or \"tanh\"");
  EXPECT_EQ(message([](Json& j) { j["heads"] = 3; }), "model configuration: heads is 3, must divide dim 16");
  EXPECT_EQ(message([](Json& j) { j = Json::array(); }), "model configuration: must be a JSON object");
}

TEST(ModelConfig, RefusesWrongFields) {
  const auto message = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = small_config();
    change(config);
    return message_of<UsageError>([&] { config.validate(); });
  };
  EXPECT_EQ(message([](ModelConfig&) {}), "nothing thrown");
  EXPECT_EQ(message([](ModelConfig& c) { c.heads = 3; }), "heads is 3, must divide dim 16");
  EXPECT_EQ(message([](ModelConfig& c) { c.qkv_dim = 9; }), "heads is 2, must divide qkv_dim 9");
  EXPECT_EQ(message([](ModelConfig& c) { c.heads = 0; }), "heads is 0, must be from 1 to 240");
  EXPECT_EQ(message([](ModelConfig& c) { c.layers = -1; }), "layers is -1, must be from 1 to 1000");
  EXPECT_EQ(message([](ModelConfig& c) { c.dropout = 1.0f; }), "dropout is 1, must be at least 0 and below 1");
  EXPECT_EQ(message([](ModelConfig& c) { c.attention_dropout = -0.1f; }),
            "attention_dropout is -0.1, must be at least 0 and below 1");
  EXPECT_EQ(message([](ModelConfig& c) { c.pooling = "max"; }),
            "pooling is \"max\", must be one of mean-padded, mean, cls, cls-vector");
  EXPECT_EQ(message([](ModelConfig& c) { c.padded_length = 39; }),
            "padded_length is 39, must be at least 40: max_length");
  EXPECT_EQ(message([](ModelConfig& c) { c.padded_length = 40, c.pooling = "cls"; }),
            "padded_length is 40, must be at least 41: max_length and one for the CLS token");
  for (const std::string name : {"nystrom", "linformer"}) {
    const std::string spec = name == "nystrom" ? "nystrom:landmarks=4" : name;
    EXPECT_EQ(message([&](ModelConfig& c) { c.padded_length = 40, c.pooling = "cls-vector", c.attention = spec; }),
              "padded_length is 40, must be at least 41 with attention " + name +
                  ": max_length and one for the vector of pooling cls-vector");
    EXPECT_EQ(message([&](ModelConfig& c) { c.padded_length = 44, c.pooling = "cls-vector", c.attention = spec; }),
              "nothing thrown");
  }
  EXPECT_EQ(message([](ModelConfig& c) { c.positions = "sinusoidal", c.dim = 15; }),
            "dim is 15, must be even for sinusoidal positions");
  EXPECT_EQ(message([](ModelConfig& c) { c.norm_epsilon = 0.0f; }), "norm_epsilon is 0, must be above 0");
  EXPECT_NE(message([](ModelConfig& c) { c.attention = "softmux"; }).find("softmux"), std::string::npos);
}

}  // namespace
}  // namespace lra
