// The command line of task programs.
#include "tasks/run/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "lib/util/check.h"
#include "tasks/listops.h"
#include "tasks/pathfinder.h"
#include "tasks/recipe.h"

namespace lra {
namespace {

CommandLine parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"lra-listops"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line("lra-listops", ListopsTask().facts(), static_cast<int>(argv.size()), argv.data());
}

std::string refusal(const std::vector<std::string>& words) {
  try {
    parse(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Options, ValuesAndWhatWasGiven) {
  const CommandLine line = parse({"--attention", "polynomial:power=3,scale=16", "--seed=7", "--resume", "--steps", "10",
                                  "--set", "attention-dropout=0.2", "--set", "warmup=3", "--checkpoint-every", "0.5"});
  EXPECT_EQ(line.options.attention, "polynomial:power=3,scale=16");
  EXPECT_EQ(line.options.seed, 7);
  EXPECT_TRUE(line.options.resume);
  EXPECT_EQ(line.options.checkpoint_every, 0.5);
  EXPECT_TRUE(line.has("seed"));
  EXPECT_FALSE(line.has("threads"));
  ASSERT_EQ(line.changes.size(), 3u);
  EXPECT_EQ(line.changes[0].where, "--steps");
  EXPECT_EQ(line.changes[1].key, "attention_dropout");
  EXPECT_EQ(line.words.front(), "lra-listops");
}

TEST(Options, Refusals) {
  EXPECT_EQ(refusal({"--step", "3"}).find("unknown option --step; did you mean steps"), 0u) << refusal({"--step", "3"});
  EXPECT_EQ(refusal({"--maps", "-1"}), "--maps: -1 is out of range; want a whole number from 0 to 1000000000");
  EXPECT_NE(refusal({"--maps", "some"}), "");
  EXPECT_NE(refusal({"--pixel-tokens", "raw"}), "") << "listops has no pictures";
  EXPECT_NE(refusal({"stray"}), "");
  EXPECT_NE(refusal({"-x"}), "");
  EXPECT_EQ(refusal({"--steps", "0"}), "--steps: 0 is out of range; want a whole number from 1 to 1000000000000");
  EXPECT_NE(refusal({"--set", "steps"}), "");
  EXPECT_NE(refusal({"--set", "stepz=3"}), "");
  EXPECT_NE(refusal({"--set", "steps=3,warmup=1"}), "");
  EXPECT_NE(refusal({"--seed", "-1"}), "");
  EXPECT_NE(refusal({"--out", ""}), "");
  EXPECT_NE(refusal({"--precision", "half"}), "");
  EXPECT_NE(refusal({"--order", "random"}), "");
  EXPECT_NE(refusal({"--max-time", "soon"}), "");
  EXPECT_NE(refusal({"--threads", "0"}), "");
}

TEST(Options, Durations) {
  EXPECT_EQ(parse_duration("x", "90"), 90);
  EXPECT_EQ(parse_duration("x", "90s"), 90);
  EXPECT_EQ(parse_duration("x", "0.5"), 0.5);
  EXPECT_EQ(parse_duration("x", "1.5h"), 5400);
  EXPECT_EQ(parse_duration("x", "1d12h"), 129600);
  EXPECT_EQ(parse_duration("x", "2h30m"), 9000);
  for (const char* bad : {"", "h", "0", "-1", "1w", "1h30", "inf", "nan", "1e3", " 1"}) {
    EXPECT_THROW(parse_duration("x", bad), UsageError) << bad;
  }
}

TEST(Options, HelpShowsEveryOptionAndFieldInNarrowLines) {
  const std::string help = help_text("lra-pathfinder", PathfinderTask().facts());
  for (std::string name : field_names<RunOptions>()) {
    std::replace(name.begin(), name.end(), '_', '-');
    EXPECT_NE(help.find("--" + name), std::string::npos) << name;
  }
  // What is of no use to a task is not among its options.
  const std::string listops = help_text("lra-listops", ListopsTask().facts());
  for (const char* name : {"--size", "--level", "--pixel-tokens"}) {
    EXPECT_EQ(listops.find(name), std::string::npos) << name;
  }
  for (const std::string& name : field_names<Recipe>()) {
    EXPECT_NE(help.find("\n  " + name + " "), std::string::npos) << name;
  }
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 112u) << line;
  EXPECT_NE(help.find("Examples:"), std::string::npos);
}

}  // namespace
}  // namespace lra
