// One list of fields: defaults, parsing, JSON, and the messages of what is refused.
#include "lib/util/fields.h"

#include <gtest/gtest.h>

namespace lra {
namespace {

struct Config {
  int64_t batch_size = 32;
  double rate = 0.5;
  bool bias = true;
  std::string word = "one";
  std::optional<std::string> maybe;

  template <class Self, class Visit>
  static void visit_fields(Self& self, Visit&& visit) {
    visit(self.batch_size, Field{.name = "batch_size", .least = 1, .most = 100});
    visit(self.rate, Field{.name = "rate", .least = 0});
    visit(self.bias, Field{.name = "bias"});
    visit(self.word, Field{.name = "word", .choices = {"one", "two"}});
    visit(self.maybe, Field{.name = "maybe", .choices = {"raw", "shifted"}});
  }
};

std::string refusal(const std::string& key, const std::string& text) {
  Config config;
  try {
    set_field(config, key, "--set " + key, text);
  } catch (const UsageError& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  return "";
}

TEST(Fields, TextIsParsedByType) {
  Config config;
  set_field(config, "batch-size", "x", "7");
  set_field(config, "rate", "x", "1e-4");
  set_field(config, "bias", "x", "0");
  set_field(config, "word", "x", "two");
  set_field(config, "maybe", "x", "raw");
  EXPECT_EQ(config.batch_size, 7);
  EXPECT_EQ(config.rate, 1e-4);
  EXPECT_FALSE(config.bias);
  EXPECT_EQ(config.word, "two");
  EXPECT_EQ(config.maybe, "raw");
  set_field(config, "maybe", "x", "none");
  EXPECT_FALSE(config.maybe.has_value());
}

TEST(Fields, WrongTextIsRefusedNamingValueAndRightForm) {
  EXPECT_EQ(refusal("batch_size", "7.5"), "--set batch_size: '7.5' is not a whole number from 1 to 100");
  EXPECT_EQ(refusal("batch_size", "0"), "--set batch_size: 0 is out of range; want a whole number from 1 to 100");
  for (const char* text : {"", " 7", "7 ", "1e1", "0x7", "99999999999999999999", "+7"}) {
    EXPECT_NE(refusal("batch_size", text), "") << text;
  }
  for (const char* text : {"", "nan", "inf", "1e999", "0.1.2", "-1"}) EXPECT_NE(refusal("rate", text), "") << text;
  EXPECT_NE(refusal("bias", "yes"), "");
  EXPECT_EQ(refusal("word", "three"), "--set word: unknown value 'three'; want one, two");
  EXPECT_NE(refusal("maybe", "cooked"), "");
}

TEST(Fields, UnknownKeysNameNearMatches) {
  EXPECT_EQ(refusal("batch_sise", "1"), "--set batch_sise: unknown key 'batch_sise'; did you mean batch_size?");
  EXPECT_EQ(refusal("size", "1"), "--set size: unknown key 'size'; did you mean batch_size?");
  EXPECT_EQ(refusal("zzzzzzzz", "1"), "--set zzzzzzzz: unknown key 'zzzzzzzz'");
}

TEST(Fields, JsonRoundTripKeepsOrderAndValues) {
  Config config;
  config.rate = 0.1;
  const Json json = fields_to_json(config);
  EXPECT_EQ(json.dump(), R"({"batch_size":32,"rate":0.1,"bias":true,"word":"one","maybe":null})");
  Config back;
  back.batch_size = 1;
  back.maybe = "raw";
  fields_from_json(back, json, "file");
  EXPECT_EQ(fields_to_json(back), json);
}

TEST(Fields, JsonTypesMustFit) {
  for (const char* text : {R"({"batch_size":"7"})", R"({"batch_size":7.5})", R"({"batch_size":1000})", R"({"bias":1})",
                           R"({"word":7})", R"({"word":"three"})", R"({"rate":"1"})", R"({"rate":-1})",
                           R"({"maybe":false})", R"({"batchsize":7})", R"([])", R"({"batch_size":null})"}) {
    Config config;
    EXPECT_THROW(fields_from_json(config, Json::parse(text), "file"), UsageError) << text;
  }
  Config config;
  fields_from_json(config, Json::parse(R"({"batch-size":1e1})"), "file");
  EXPECT_EQ(config.batch_size, 10);
}

TEST(Fields, EveryTextReadsBack) {
  for (double value : {0.0, 1e-4, 0.1, 1.0 / 3, 1e300, 12345678.0}) {
    Config config, back;
    config.rate = value;
    set_field(back, "rate", "x", get_field(config, "rate"));
    EXPECT_EQ(back.rate, value);
  }
}

}  // namespace
}  // namespace lra
