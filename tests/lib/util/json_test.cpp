// JSON: messages that say where, output that is always valid.
#include "lib/util/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lib/util/check.h"
#include "lib/util/rng.h"

namespace lra {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "file.json");
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error: " << text;
  return "";
}

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(dump_json(parse_json(R"({"b": 1, "a": [1.5, true, null], "c": {}})", "x")),
            R"({"b":1,"a":[1.5,true,null],"c":{}})");
}

TEST(Json, ErrorsNameFileLineAndColumn) {
  EXPECT_EQ(error_of("{\n  \"a\": 1,\n  \"b\" 2}").rfind("file.json:3:7: not JSON", 0), 0u)
      << error_of("{\n  \"a\": 1,\n  \"b\" 2}");
  EXPECT_EQ(error_of("").rfind("file.json:1:1: not JSON", 0), 0u) << error_of("");
  EXPECT_EQ(error_of("[1] x").rfind("file.json:1:5: not JSON", 0), 0u) << error_of("[1] x");
  for (const std::string text : {"NaN", "{\"a\": 1e999}", "\"\xff\"", "[1,]", "\"\n\"", "{", "// x\n1"}) {
    const std::string error = error_of(text);
    EXPECT_EQ(error.rfind("file.json", 0), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_LT(error.size(), 300u) << error;
  }
  EXPECT_LT(error_of("\"" + std::string(100'000, 'x')).size(), 300u);
}

TEST(Json, KeysStandOnceInAnObject) {
  EXPECT_EQ(error_of(R"({"a": 1, "b": {"a": 2, "a": 3}})"), "file.json: key \"a\" stands twice in one object");
  EXPECT_NO_THROW(parse_json(R"([{"a": 1}, {"a": {"a": 2}}, {"a": 1}])", "x"));
}

TEST(Json, DepthIsBounded) {
  EXPECT_NE(error_of(std::string(1'000'000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NO_THROW(parse_json(std::string(50, '[') + std::string(50, ']'), "x"));
}

TEST(Json, KeysOfAnObjectAreBounded) {
  const auto object = [](int keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_EQ(parse_json(object(4096), "x").size(), 4096u);
  EXPECT_EQ(error_of("[" + object(4097) + "]"), "file.json: an object of more than 4096 keys");
}

TEST(Json, TryingThrowsNothing) {
  EXPECT_EQ(try_parse_json("{\"a\": [1]}").value(), Json({{"a", {1}}}));
  EXPECT_EQ(try_parse_json("null").value(), Json(nullptr));
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("1e999"), std::string("[1] x"), std::string("\"\xff\""),
        std::string(1000, '['), std::string(100, '[') + std::string(100, ']'), std::string("{\"a\":1,\"a\":2}")}) {
    EXPECT_FALSE(try_parse_json(text)) << text;
  }
}

TEST(Json, MissingFileIsNamed) { EXPECT_THROW(read_json("/nowhere/x.json"), InputError); }

TEST(Json, OutputIsAlwaysJson) {
  const Json json = {
      {"nan", std::nan("")}, {"infinity", std::numeric_limits<double>::infinity()}, {"bytes", "a\xff\n"}};
  EXPECT_EQ(dump_json(json), "{\"nan\":null,\"infinity\":null,\"bytes\":\"a\xef\xbf\xbd\\n\"}");
  EXPECT_EQ(dump_json(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

TEST(Json, NumbersSurviveARoundTrip) {
  Random random(0, RandomStream::kData);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.normal() * std::pow(10.0, static_cast<double>(random.below(40)) - 20.0);
    EXPECT_EQ(parse_json(dump_json(Json(value)), "x").get<double>(), value);
  }
}

TEST(Json, HostileBytesNeverCrash) {
  const std::string valid = R"({"schema": "lra-result/1", "a": [1, 2.5e-3, {"b": "\u00e9\n"}], "c": null, "d": true})";
  Random random(1, RandomStream::kData);
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = valid;
    for (uint32_t k = 0; k <= random.below(3); ++k) {
      text[random.below(static_cast<uint32_t>(text.size()))] = static_cast<char>(random.below(256));
    }
    try {
      dump_json(parse_json(text, "x"));
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 10'000);
}

}  // namespace
}  // namespace lra
