// Tokens, values and spelling of ListOps expressions.
#include <gtest/gtest.h>

#include <algorithm>

#include "datasets/listops/tokens.h"
#include "lib/util/rng.h"

namespace lra::listops {
namespace {

using Ids = std::vector<uint8_t>;

Ids ids_of(std::string_view text) {
  Ids ids;
  std::string_view unknown;
  EXPECT_TRUE(tokenize(text, ids, unknown)) << text << ": " << unknown;
  return ids;
}

int value_of(std::string_view text) { return Evaluator().evaluate(ids_of(text)); }

TEST(ListopsTokens, HaveTheFixedIds) {
  EXPECT_EQ(ids_of("0 1 2 3 4 5 6 7 8 9"), (Ids{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(ids_of("[MAX [MIN [MED [SM ]"), (Ids{11, 12, 13, 14, 15}));
  EXPECT_EQ(ids_of("( ( ( [MIN 0 ) 9 ) ] )"), (Ids{12, 1, 10, 15}));
  EXPECT_EQ(ids_of("(([MIN 0)9) ]"), ids_of("[MIN 0 9 ]"));
  EXPECT_EQ(ids_of("  "), Ids{});
  for (uint8_t id = 1; id <= 15; ++id) EXPECT_EQ(ids_of(token_text(id)), Ids{id});
}

TEST(ListopsTokens, RefusesEverythingElse) {
  const std::string bad[] = {"10",  "-1",  "[MAX]", "[max", "MAX", "[",           "[MEDIAN",           "3]",
                             "1\t", "1\r", "x",     "\xff", ",",   "[SM\xc2\xa0", std::string("\0", 1)};
  for (const std::string& token : bad) {
    Ids ids;
    std::string_view unknown;
    const std::string text = "[MAX 4 " + token + " ]";
    EXPECT_FALSE(tokenize(text, ids, unknown)) << token;
    EXPECT_EQ(unknown, token);
    EXPECT_EQ(ids, (Ids{kMax, 5}));
  }
}

TEST(ListopsEvaluator, AppliesTheFourOperators) {
  EXPECT_EQ(value_of("[MAX 3 9 4 ]"), 9);
  EXPECT_EQ(value_of("[MIN 3 9 4 ]"), 3);
  EXPECT_EQ(value_of("[SM 3 9 4 ]"), 6);
  EXPECT_EQ(value_of("[MED 9 1 4 ]"), 4);
  EXPECT_EQ(value_of("[MED 9 1 4 2 ]"), 3);
  EXPECT_EQ(value_of("[MED 4 3 ]"), 3);  // 3.5 truncated
  EXPECT_EQ(value_of("[MED 0 9 ]"), 4);
  EXPECT_EQ(value_of("[MED 9 9 0 9 ]"), 9);
  EXPECT_EQ(value_of("[MED 7 ]"), 7);
  EXPECT_EQ(value_of("5"), 5);
  EXPECT_EQ(value_of("[SM 9 9 9 9 9 9 9 9 9 9 ]"), 0);
  EXPECT_EQ(value_of("[MAX 1 [MIN 8 [SM 5 6 ] ] [MED 2 2 [MAX 0 ] ] ]"), 2);
}

TEST(ListopsEvaluator, AgreesWithSortingOnRandomArguments) {
  Random random(3, RandomStream::kData);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> values(1 + random.below(12));
    for (uint8_t& value : values) value = static_cast<uint8_t>(random.below(10));
    std::vector<uint8_t> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    int sum = 0;
    for (const uint8_t value : values) sum += value;
    const size_t n = values.size();
    const int median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    EXPECT_EQ(apply_operator(kMax, values), sorted.back());
    EXPECT_EQ(apply_operator(kMin, values), sorted.front());
    EXPECT_EQ(apply_operator(kMed, values), median);
    EXPECT_EQ(apply_operator(kSum, values), sum % 10);
  }
}

TEST(ListopsEvaluator, SaysWhyIdsAreNotOneExpression) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "no expression"},
      {"1 2", "more follows"},
      {"[MAX 1 ] 2", "more follows"},
      {"[MAX 1 ] ]", "more follows"},
      {"[MAX 1 ] [MIN 2 ]", "more follows"},
      {"]", "a ] without its operator"},
      {"[MAX", "an operator without its ]"},
      {"[MAX 1 [MIN 2 ]", "an operator without its ]"},
      {"[MAX ]", "an operator without arguments"},
      {"[MAX 1 [SM ] ]", "an operator without arguments"},
  };
  Evaluator evaluator;  // one object for all: nothing of a failed call may stay
  for (const auto& [text, problem] : bad) {
    EXPECT_EQ(evaluator.evaluate(ids_of(text)), -1) << text;
    EXPECT_NE(std::string(evaluator.problem()).find(problem), std::string::npos) << text << ": " << evaluator.problem();
    EXPECT_EQ(evaluator.evaluate(ids_of("[MAX 1 2 ]")), 2);
  }
}

TEST(ListopsEvaluator, TakesNestingOfAnyDepth) {
  Ids ids(1'000'000, kMin);
  ids.push_back(8);
  ids.insert(ids.end(), 1'000'000, kClose);
  EXPECT_EQ(Evaluator().evaluate(ids), 7);
}

TEST(ListopsText, SpellsAsTheReleaseDoes) {
  for (const std::string_view text :
       {"3", "( ( ( [MIN 0 ) 9 ) ] )", "( ( ( [MED 4 ) ( ( ( ( [SM 8 ) 9 ) 5 ) ] ) ) ] )",
        "( ( ( [MAX ( ( ( [SM 1 ) 2 ) ] ) ) ( ( ( [MIN 3 ) ( ( ( [MED 4 ) 5 ) ] ) ) ] ) ) ] )"}) {
    std::string spelled;
    append_release_text(ids_of(text), spelled);
    EXPECT_EQ(spelled, text);
  }
}

}  // namespace
}  // namespace lra::listops
