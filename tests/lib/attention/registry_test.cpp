// Attention specs: defaults, canonical form, slugs, and every way to get one wrong.
#include "lib/attention/registry.h"

#include <gtest/gtest.h>

#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra {
namespace {

std::string error_of(const std::string& spec) {
  try {
    parse_attention(spec);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AttentionSpec, FillsInDefaults) {
  const AttentionSpec spec = parse_attention("polynomial");
  EXPECT_EQ(spec.integer("power"), 3);
  EXPECT_EQ(spec.get("scale"), "16");
  EXPECT_EQ(spec.get("length"), "real");
  EXPECT_FALSE(spec.flag("gain"));
  EXPECT_EQ(spec.get("form"), "auto");
  EXPECT_EQ(spec.canonical(), "polynomial");
}

TEST(AttentionSpec, CanonicalWritesWhatDiffersInTheOrderOfTheList) {
  EXPECT_EQ(parse_attention("polynomial:scale=sqrt,power=2").canonical(), "polynomial:power=2,scale=sqrt");
  EXPECT_EQ(parse_attention("polynomial:power=3,scale=16").canonical(), "polynomial");
  EXPECT_EQ(parse_attention("polynomial:power=03,scale=16.0").canonical(), "polynomial");
  EXPECT_EQ(parse_attention("polynomial:scale=0.50,gain=1").canonical(), "polynomial:scale=0.5,gain=1");
  EXPECT_EQ(parse_attention("polynomial:form=linear,gain=1,power=2").canonical(),
            "polynomial:power=2,gain=1,form=linear");
  EXPECT_EQ(parse_attention("polynomial:form=auto").canonical(), "polynomial");
  const std::string large = parse_attention("polynomial:scale=100000000000000000000").canonical();
  EXPECT_EQ(large, "polynomial:scale=1e20") << "a + would begin a modifier";
  EXPECT_EQ(parse_attention(large).canonical(), large);
}

TEST(AttentionSpec, Slug) {
  EXPECT_EQ(parse_attention("softmax").slug(), "softmax");
  EXPECT_EQ(parse_attention("polynomial:power=2,scale=0.5").slug(), "polynomial-power-2-scale-0.5");
}

TEST(AttentionSpec, OptionsAsJson) {
  EXPECT_EQ(parse_attention("polynomial").options_json().dump(),
            R"({"power":3,"scale":"16","length":"real","gain":false,"form":"auto","causal":false})");
  EXPECT_EQ(parse_attention("polynomial:power=1,form=linear").options_json().at("form"), "linear");
}

TEST(AttentionSpec, EveryErrorNamesWhatIsWrong) {
  std::string known;
  for (const AttentionFamily& family : attention_families()) known += (known.empty() ? "" : ", ") + family.name;
  EXPECT_EQ(error_of("softmux"), "unknown attention 'softmux'; known: " + known);
  EXPECT_EQ(error_of(""), "unknown attention ''; known: " + known);
  EXPECT_EQ(error_of("softmax:power=3"), "attention softmax has no option 'power=3'; it has: causal=0");
  EXPECT_EQ(error_of("polynomial:pow=3"),
            "attention polynomial has no option 'pow=3'; it has: power=3, scale=16, length=real|max, gain=0, "
            "form=auto|quadratic|linear, causal=0");
  EXPECT_EQ(error_of("polynomial:gain"),
            "attention polynomial has no option 'gain'; it has: power=3, scale=16, length=real|max, gain=0, "
            "form=auto|quadratic|linear, causal=0");
  EXPECT_EQ(error_of("polynomial:power=0"), "attention polynomial: power=0 must be 1 to 8");
  EXPECT_EQ(error_of("polynomial:power=9"), "attention polynomial: power=9 must be 1 to 8");
  EXPECT_EQ(error_of("polynomial:power=2.5"), "attention polynomial: power=2.5 must be a whole number");
  EXPECT_EQ(error_of("polynomial:power="), "attention polynomial: power= must be a whole number");
  EXPECT_EQ(error_of("polynomial:power=99999999999999999999"),
            "attention polynomial: power=99999999999999999999 must be a whole number");
  for (const char* scale : {"0", "-1", "nan", "inf", "big", "1e999", ""}) {
    EXPECT_EQ(error_of(std::string("polynomial:scale=") + scale),
              std::string("attention polynomial: scale=") + scale + " must be a positive number, sqrt, n or moment");
  }
  EXPECT_EQ(error_of("polynomial:length=long"), "attention polynomial: length=long must be one of real, max");
  EXPECT_EQ(error_of("polynomial:gain=2"), "attention polynomial: gain=2 must be 0 or 1");
  EXPECT_EQ(error_of("polynomial:form=fast"), "attention polynomial: form=fast must be one of auto, quadratic, linear");
  EXPECT_EQ(error_of("polynomial:form=linear"),
            "attention polynomial: form=linear has power=1 and power=2, not power=3; use form=auto");
  EXPECT_EQ(error_of("polynomial:power=3,power=2"), "attention polynomial: option 'power' is given twice");
  EXPECT_EQ(error_of("polynomial:"), "attention 'polynomial:': nothing after ':'; write polynomial:key=value");
  EXPECT_NE(error_of("softmax+xyz"), "accepted");
}

// The table of docs/attention.md is the registry's own.
TEST(AttentionList, IsTheTableOfTheDocumentation) {
  const std::string text = read_file(LRA_SOURCE_DIR "/docs/attention.md");
  EXPECT_NE(text.find(attention_table()), std::string::npos) << "docs/attention.md should hold\n" << attention_table();
}

TEST(AttentionSpec, FeaturesAndLandmarks) {
  EXPECT_EQ(error_of("favor:features=-1"),
            "attention favor: features=-1 must be 0 (chosen by the width of a head) to 65536");
  EXPECT_EQ(error_of("hrf:angles=0"), "attention hrf: angles=0 must be 1 to 256");
  EXPECT_EQ(error_of("linformer:rank=0"), "attention linformer: rank=0 must be 1 to 65536");
  EXPECT_EQ(error_of("nystrom:landmarks=0"), "attention nystrom: landmarks=0 must be 1 to 65536");
  EXPECT_EQ(error_of("nystrom:conv=4"),
            "attention nystrom: conv=4 must be 0 (none) or an odd number of taps up to 4095");
  EXPECT_EQ(error_of("nystrom:conv=0"), "accepted");
  try {
    make_attention(parse_attention("nystrom"), {2, 8, 200, 16});
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "attention nystrom: landmarks=128 must divide the padded length 200");
  }
}

TEST(AttentionList, NamesEveryFamilyAndOption) {
  const std::string list = attention_list();
  for (const AttentionFamily& family : attention_families()) {
    EXPECT_NE(list.find(family.name), std::string::npos);
    EXPECT_NE(list.find(family.source), std::string::npos);
    for (const AttentionOption& option : family.options) {
      const std::string apart = option.key == "causal" ? "" : "  ";  // from its values
      EXPECT_NE(list.find(apart + option.help), std::string::npos) << option.help;
    }
  }
}

}  // namespace
}  // namespace lra
