// Settings of a run, fresh and resumed.
#include "tasks/run/settings.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "lib/util/check.h"
#include "tasks/listops.h"

namespace lra {
namespace {

const TaskFacts& facts() {
  static const ListopsTask task;
  return task.facts();
}

CommandLine parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"lra-listops"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line("lra-listops", facts(), static_cast<int>(argv.size()), argv.data());
}

RunSettings fresh(const std::vector<std::string>& words, std::string* said = nullptr) {
  std::vector<std::string> notes;
  RunSettings settings = resolve_settings(facts(), parse(words), notes);
  if (said) *said = fmt::format("{}", fmt::join(notes, "\n"));
  return settings;
}

TEST(Settings, StepsAloneAreScaledAndSaid) {
  std::string said;
  EXPECT_EQ(fresh({"--steps", "100"}, &said).recipe.warmup, 20);
  EXPECT_NE(said.find("warm-up 20, evaluation every 10 steps"), std::string::npos) << said;
  EXPECT_EQ(fresh({"--set", "steps=100", "--warmup", "7", "--eval-every", "0"}, &said).recipe.warmup, 7);
  EXPECT_EQ(said, "");
  EXPECT_EQ(fresh({}, &said).recipe.warmup, 1000);
  EXPECT_EQ(said, "");
}

TEST(Settings, CanonicalSpecAndRefusals) {
  EXPECT_EQ(fresh({"--attention", "softmax"}).attention, "softmax");
  EXPECT_THROW(fresh({"--attention", "softmix"}), UsageError);
  EXPECT_THROW(fresh({"--attention", "polynomial:power=0"}), UsageError);
  EXPECT_THROW(fresh({"--attention", "polynomial:scale=0"}), UsageError);
  EXPECT_THROW(fresh({"--attention", "polynomial:pwr=2"}), UsageError);
  EXPECT_THROW(fresh({"--heads", "3"}), UsageError);
  EXPECT_THROW(fresh({"--warmup", "5000"}), UsageError);
}

TEST(Settings, ResumeTakesWhatIsNotGivenAndRefusesWhatDiffers) {
  const RunSettings run = fresh({"--steps", "100", "--seed", "3", "--recipe", "quick", "--log-every", "5", "--set",
                                 "dropout=0.2", "--limit-train", "64"});
  const Json saved = settings_to_json(run);
  const auto resume = [&](std::vector<std::string> words) {
    words.emplace_back("--resume");
    return resume_settings(facts(), parse(words), saved, "folder");
  };
  EXPECT_EQ(settings_to_json(resume({})), saved);
  EXPECT_EQ(settings_to_json(
                resume({"--steps", "100", "--seed", "3", "--recipe", "quick", "--dropout", "0.2", "--padded-length",
                        "0", "--attention", "softmax", "--threads", "5", "--max-time", "3h", "--progress", "none"})),
            saved);
  EXPECT_EQ(resume({"--log-every", "7"}).log_every, 7);
  EXPECT_EQ(resume({"--checkpoint-every", "7"}).checkpoint_every, 7);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--steps", "101"},
                                             {"--seed", "4"},
                                             {"--recipe", "lra"},
                                             {"--dropout", "0.1"},
                                             {"--limit-train", "65"},
                                             {"--attention", "polynomial:power=3"},
                                             {"--order", "sequential"},
                                             {"--data", "/x"},
                                             {"--init", "/x"},
                                             {"--warmup", "1"},
                                             {"--eval-batch-size", "7"},
                                             {"--strict"},
                                             {"--backend", "cuda"},
                                             {"--limit-eval", "1"},
                                             {"--eval-examples", "1"}}) {
    EXPECT_THROW(resume(words), UsageError) << words.front();
  }
}

TEST(Settings, DamagedStateIsAnInputError) {
  Json saved = settings_to_json(fresh({}));
  saved["seed"] = "x";
  EXPECT_THROW(resume_settings(facts(), parse({}), saved, "folder"), InputError);
  saved = settings_to_json(fresh({}));
  saved.erase("recipe");
  EXPECT_THROW(resume_settings(facts(), parse({}), saved, "folder"), InputError);
}

TEST(Settings, DefaultFolder) {
  EXPECT_EQ(
      run_folder(kRunsFolder, facts(), parse({"--attention", "polynomial:power=3,scale=16", "--seed", "2"})).string(),
      "runs/listops/nystromformer/" +
          std::string(fresh({"--attention", "polynomial:power=3,scale=16"}).attention == "polynomial"
                          ? "polynomial"
                          : "polynomial-power-3-scale-16") +
          "/seed-2");
}

}  // namespace
}  // namespace lra
