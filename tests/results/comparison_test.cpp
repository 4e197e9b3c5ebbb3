// What counts together, what is tested against what, and what is said of it.
#include "results/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <regex>

#include "lib/util/check.h"
#include "results/comparison_blocks.h"
#include "results/comparison_output.h"
#include "results/published.h"
#include "results/report.h"
#include "tests/results/schema.h"

namespace lra {
namespace {

// A finished run on 2,000 test rows of 10 classes.
Record run_of(const std::string& attention, int64_t seed, double accuracy) {
  Record r;
  r.status = RunStatus::kCompleted;
  r.task = {"listops", 10, 32, 2000, 2048};
  r.attention.spec = r.attention.name = attention;
  r.recipe = {{"name", "quick"}, {"steps", 100}};
  r.seed = seed;
  r.model.parameters = 1000;
  SplitRecord split;
  split.examples = 2000;
  split.majority_share = 0.17;
  split.hash = "a";
  r.data.train = r.data.validation = r.data.test = split;
  r.protocol = {"given split", "best validation accuracy, earliest", "shuffled"};
  r.best = CheckpointMetrics{.step = 50, .test_accuracy = accuracy, .test_examples = 2000};
  r.last = CheckpointMetrics{.step = 100, .test_accuracy = accuracy - 0.01, .test_examples = 2000};
  r.speed.samples_per_second = 100.0;
  return r;
}

class ComparisonTest : public testing::Test {
 protected:
  void add(const Record& record) { files.records.push_back({"run" + std::to_string(files.records.size()), record}); }
  void add_runs(const std::string& attention, const std::vector<double>& accuracies) {
    for (size_t i = 0; i < accuracies.size(); ++i) add(run_of(attention, static_cast<int64_t>(i), accuracies[i]));
  }
  Comparison result(const std::string& baseline = "softmax") { return compare(files, baseline, ""); }

  RecordFiles files;
};

TEST_F(ComparisonTest, PairsSharedSeedsAndKeepsToTheNoise) {
  add_runs("softmax", {0.30, 0.32, 0.31});
  add_runs("better", {0.35, 0.3702, 0.3605});
  add_runs("same", {0.31, 0.31, 0.3102});
  const Comparison c = result();
  ASSERT_EQ(c.settings.size(), 1u);
  const std::vector<Cell>& cells = c.settings[0].cells;
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0].attention, "softmax");  // the baseline comes first
  EXPECT_FALSE(cells[0].versus);
  EXPECT_NEAR(cells[0].test.mean, 0.31, 1e-12);
  EXPECT_NEAR(cells[0].last.mean, 0.30, 1e-12);
  EXPECT_EQ(cells[1].versus->test, "paired t");
  EXPECT_EQ(cells[1].versus->verdict, Verdict::kBetter);
  EXPECT_NEAR(cells[1].versus->p_holm, 2 * cells[1].versus->difference.p, 1e-15);
  EXPECT_EQ(cells[2].versus->verdict, Verdict::kWithinNoise);
}

TEST_F(ComparisonTest, OtherSeedsGoByWelch) {
  add_runs("softmax", {0.30, 0.32, 0.31});
  add(run_of("other", 7, 0.2));
  add(run_of("other", 8, 0.21));
  const Comparison c = result();
  EXPECT_EQ(c.settings[0].cells[1].versus->test, "Welch t");
  EXPECT_EQ(c.settings[0].cells[1].versus->verdict, Verdict::kWorse);
}

TEST_F(ComparisonTest, OneSeedIsUntestedAndHasTheIntervalOfItsRows) {
  add_runs("softmax", {0.3});
  add_runs("other", {0.9});
  const Cell cell = result().settings[0].cells[1];
  EXPECT_EQ(cell.versus->verdict, Verdict::kUntested);
  EXPECT_EQ(cell.versus->reason, "one seed");
  EXPECT_NEAR(cell.versus->difference.difference, 0.6, 1e-12);
  EXPECT_EQ(cell.interval.low, wilson_interval(1800, 2000).low);
}

TEST_F(ComparisonTest, NeverMixesRecipeDataProtocolOrPrecision) {
  add(run_of("softmax", 0, 0.3));
  Record r = run_of("softmax", 1, 0.4);
  r.recipe["steps"] = 200;
  add(r);
  r = run_of("softmax", 2, 0.4);
  r.data.validation->hash = "other";
  add(r);
  r = run_of("softmax", 3, 0.4);
  r.protocol.validation = "test split";
  add(r);
  r = run_of("softmax", 4, 0.4);
  r.environment.precision = "bfloat16";
  add(r);
  r = run_of("softmax", 5, 0.4);  // a name alone is no difference
  r.recipe["name"] = "mine";
  add(r);
  const Comparison c = result();
  ASSERT_EQ(c.settings.size(), 5u);
  size_t runs = 0;
  for (const Setting& setting : c.settings) {
    runs += setting.cells[0].runs.size();
    EXPECT_EQ(setting.differs.size(), 4u);  // each field in which some setting of the task differs
  }
  EXPECT_EQ(runs, 6u);
  EXPECT_NE(as_text(comparison_document(c, false)).find("recipe.steps 200"), std::string::npos);
}

TEST_F(ComparisonTest, OnlyFinishedRunsCount) {
  add_runs("softmax", {0.3, 0.32});
  const RunStatus statuses[] = {RunStatus::kDiverged, RunStatus::kFailed, RunStatus::kInterrupted, RunStatus::kRunning};
  for (size_t i = 0; i < std::size(statuses); ++i) {
    Record r = run_of("softmax", static_cast<int64_t>(10 + i), 0.9);
    r.status = statuses[i];
    add(r);
  }
  Record r = run_of("softmax", 20, std::nan(""));
  add(r);
  const Cell cell = result().settings[0].cells[0];
  EXPECT_NEAR(cell.test.mean, 0.31, 1e-12);
  ASSERT_EQ(cell.without.size(), 5u);
  EXPECT_EQ(cell.without[0], "seed 10 diverged");
  EXPECT_EQ(cell.without[4], "seed 20 has no test accuracy");
}

TEST_F(ComparisonTest, TheSameSeedTwiceIsOneSample) {
  add_runs("softmax", {0.3, 0.32});
  add(run_of("softmax", 1, 0.32));
  const Comparison c = result();
  EXPECT_EQ(c.settings[0].cells[0].runs.size(), 2u);
  ASSERT_EQ(c.left_out.size(), 1u);
  EXPECT_EQ(c.left_out[0], "run2: repeats seed 1 of run1");
  files.records[2].record.best->test_accuracy = 0.25;
  EXPECT_EQ(result().left_out[0],
            "run2: repeats seed 1 of run1, which counts, with another test accuracy: 25 % against 32 %");
}

TEST_F(ComparisonTest, AnEvaluationIsNoRun) {
  Record r = run_of("softmax", 0, 0.3);
  r.recipe["steps"] = nullptr;
  add(r);  // of the training rows
  r.data.train.reset();
  add(r);
  const Comparison c = result();
  EXPECT_TRUE(c.settings.empty());
  EXPECT_EQ(c.left_out, (std::vector<std::string>{"run0: evaluates a checkpoint, is no training run",
                                                  "run1: evaluates a checkpoint, is no training run"}));
}

// As a cell of the suite whose data is bad.
Record failed_without_data(const std::string& attention, int64_t seed) {
  Record r = run_of(attention, seed, 0.3);
  r.status = RunStatus::kFailed;
  r.data = DataRecord();
  r.best = r.last = std::nullopt;
  return r;
}

TEST_F(ComparisonTest, ARunThatFailedBeforeItsDataIsListedBySeed) {
  add(failed_without_data("softmax", 2));
  add_runs("softmax", {0.3, 0.32});
  add(failed_without_data("other", 0));
  Comparison c = result();
  EXPECT_TRUE(c.left_out.empty());
  ASSERT_EQ(c.settings.size(), 1u);
  ASSERT_EQ(c.settings[0].cells.size(), 2u);
  EXPECT_EQ(c.settings[0].cells[0].without, std::vector<std::string>{"seed 2 failed"});
  EXPECT_EQ(c.settings[0].cells[1].without, std::vector<std::string>{"seed 0 failed"});
  EXPECT_EQ(c.settings[0].test_examples, 2000);

  // Of two sets of data it can't be told which.
  Record r = run_of("softmax", 0, 0.4);
  r.data.train->hash = "other";
  add(r);
  c = result();
  EXPECT_EQ(c.settings.size(), 3u);
  EXPECT_NE(as_text(comparison_document(c, false)).find("no data was read"), std::string::npos);

  files.records.clear();
  add(failed_without_data("softmax", 2));
  ASSERT_EQ(result().settings.size(), 1u);
  r = run_of("softmax", 0, 0.3);
  r.data.train.reset();
  add(r);
  EXPECT_EQ(result().left_out, std::vector<std::string>{"run1: completed, but names no training data"});
}

TEST_F(ComparisonTest, SelectionOnTheTestSplitIsMarkedEverywhere) {
  const auto mentions = [&](const std::string& text) {  // over the ends of lines, too
    return std::regex_replace(text, std::regex("\\s+"), " ").find(kSelectedOnTest) != std::string::npos;
  };
  const auto outputs = [&] {
    const Comparison c = result();
    return std::vector<std::string>{as_text(comparison_document(c, false)),
                                    as_markdown(comparison_document(c, false)),
                                    comparison_latex(c, false),
                                    html_report(c, {}).html,
                                    as_text(mixed_document(c)),
                                    as_text({overviews(c).empty() ? Block{} : overview_block(overviews(c)[0])})};
  };
  for (const char* validation : {"tenth", "test"}) {
    files.records.clear();
    for (const char* task : {"listops", "text"}) {
      for (const int64_t steps : {100, 200}) {
        Record r = run_of("softmax", 0, 0.4);
        r.task.name = task;
        r.recipe["name"] = std::to_string(steps);
        r.recipe["steps"] = steps;
        r.recipe["validation"] = validation;
        add(r);
      }
    }
    for (const std::string& text : outputs()) EXPECT_EQ(mentions(text), validation == std::string("test")) << text;
    EXPECT_EQ(comparison_csv(result()).find(",true,") != std::string::npos, validation == std::string("test"));
  }
}

TEST_F(ComparisonTest, ChanceIsTheCommonestClass) {
  add(run_of("guess", 0, 0.18));
  add(run_of("learnt", 0, 0.25));
  const Comparison c = result();
  EXPECT_EQ(c.settings[0].chance, 0.17);
  EXPECT_FALSE(c.settings[0].cells[0].chance_level);
  EXPECT_TRUE(c.settings[0].cells[1].chance_level);
  EXPECT_FALSE(c.settings[0].cells[0].versus);  // no baseline here
}

TEST_F(ComparisonTest, ChanceIsOfTheRowsThatWereTested) {
  Record unfinished = run_of("softmax", 1, 0.3);
  unfinished.status = RunStatus::kInterrupted;
  unfinished.best = std::nullopt;
  add(unfinished);
  Record r = run_of("softmax", 0, 0.3);  // tested on the first 20 of 2,000 rows
  r.best->test_examples = 20;
  r.best->test_confusion = {{3, 9}, {2, 6}};
  add(r);
  EXPECT_EQ(result().settings[0].chance, 0.6);
  EXPECT_EQ(result().settings[0].test_examples, 20);
  EXPECT_TRUE(result().settings[0].cells[0].chance_level);
  for (const auto& confusion : {std::vector<std::vector<int64_t>>{{3, 9}, {2, 7}}, {{-3, 15}, {2, 6}}, {{0}}}) {
    files.records[1].record.best->test_confusion = confusion;  // not of these rows
    EXPECT_EQ(result().settings[0].chance, 0.17);
  }
}

TEST_F(ComparisonTest, ChanceIsJudgedByRowsAndNotBySeedsAlone) {
  const auto chance_level = [&](const std::vector<double>& accuracies, std::optional<int64_t> rows, double chance) {
    files.records.clear();
    for (size_t i = 0; i < accuracies.size(); ++i) {
      Record r = run_of("softmax", static_cast<int64_t>(i), accuracies[i]);
      r.best->test_examples = rows;
      r.data.test->majority_share = chance;
      add(r);
    }
    return result().settings[0].cells[0].chance_level;
  };
  EXPECT_FALSE(chance_level({0.62, 0.66}, 2000, 0.5));  // two seeds, whose t interval reaches far below
  EXPECT_FALSE(chance_level({0.22, 0.262}, 2000, 0.1));
  EXPECT_TRUE(chance_level({0.1705, 0.171, 0.1705, 0.171, 0.1705}, 2000, 0.17));  // collapsed, close together
  EXPECT_TRUE(chance_level({0.171, 0.171, 0.171}, 2000, 0.17));                   // and equal
  EXPECT_TRUE(chance_level({0.17}, std::nullopt, 0.17));
  EXPECT_TRUE(chance_level({0.17, 0.16}, std::nullopt, 0.17));
  EXPECT_FALSE(chance_level({0.3}, std::nullopt, 0.17));
  EXPECT_TRUE(chance_level({0.19, 0.14}, 2000, 0.17));  // one above, the mean not
  EXPECT_FALSE(chance_level({0.17, 0.4}, 2000, 0.17));
  EXPECT_EQ(result().settings[0].cells[0].at_chance, std::vector<std::string>{"seed 0"});
  EXPECT_NE(as_text(comparison_document(result(), false)).find("by its own test rows: seed 0"), std::string::npos);
  for (RecordFile& file : files.records) file.record.data.test.reset();  // chance is not known
  EXPECT_TRUE(result().settings[0].cells[0].at_chance.empty());
}

TEST_F(ComparisonTest, MillisecondsAreOfOneMachine) {
  const auto timed = [&](const char* attention, int64_t seed, double speed, const char* cpu) {
    Record r = run_of(attention, seed, 0.3);
    r.speed.samples_per_second = speed;
    r.environment.cpu = cpu;
    add(r);
  };
  timed("softmax", 0, 100.0, "here");
  timed("both", 0, 50.0, "here");
  timed("both", 1, 500.0, "there");
  timed("elsewhere", 0, 500.0, "there");
  const Comparison c = result();
  const auto cell = [&](const char* attention) {
    for (const Cell& cell : c.settings[0].cells) {
      if (cell.attention == attention) return cell;
    }
    return Cell{};
  };
  EXPECT_DOUBLE_EQ(cell("softmax").ms_per_sample, 10.0);
  EXPECT_DOUBLE_EQ(cell("both").ms_per_sample, 20.0);
  EXPECT_EQ(cell("both").timed_runs, 1u);
  EXPECT_TRUE(std::isnan(cell("elsewhere").ms_per_sample));
  EXPECT_EQ(cell("elsewhere").ms_withheld, "CPU");
  const std::string text = as_markdown(comparison_document(c, false));
  EXPECT_NE(text.find("elsewhere: no ms/sample"), std::string::npos);
  EXPECT_NE(text.find("both: ms/sample over 1 of 2 runs"), std::string::npos);
  EXPECT_EQ(comparison_json(c)["settings"][0]["cells"].back()["ms_per_sample_withheld_for"],
            c.settings[0].cells.back().ms_withheld.empty() ? Json(nullptr) : Json("CPU"));
}

TEST_F(ComparisonTest, UncommittedChangesWithholdRelativeTime) {
  for (const char* attention : {"softmax", "other"}) {
    Record r = run_of(attention, 0, 0.3);
    r.environment.dirty = true;
    add(r);
  }
  Comparison c = result();
  EXPECT_TRUE(std::isnan(c.settings[0].cells[1].relative_time));
  EXPECT_EQ(c.settings[0].cells[1].time_withheld, "uncommitted changes");
  files.records[0].record.environment.dirty = false;
  EXPECT_EQ(result().settings[0].cells[1].time_withheld, "uncommitted changes");
  files.records[1].record.environment.dirty = false;
  EXPECT_EQ(result().settings[0].cells[1].relative_time, 1.0);
}

TEST_F(ComparisonTest, NormsAreColumns) {
  for (int64_t seed = 0; seed < 2; ++seed) {
    Record r = run_of("softmax", seed, 0.3);
    for (const int64_t step : {50, 100}) {
      const double late = step == 100 ? static_cast<double>(seed) : 70.0;
      r.norms.push_back(
          {{"step", step}, {"layer", 0}, {"frobenius_per_sqrt_n", 1.0 + late}, {"max_score", 3.0 + late}});
      r.norms.push_back({{"step", step}, {"layer", 1}, {"frobenius_per_sqrt_n", 2.0 + late}, {"max_score", nullptr}});
    }
    add(r);
  }
  add(run_of("without", 0, 0.3));
  const Comparison c = result();
  EXPECT_DOUBLE_EQ(c.settings[0].cells[0].norm_per_sqrt_n, 2.0);
  EXPECT_DOUBLE_EQ(c.settings[0].cells[0].max_score, 4.0);
  EXPECT_TRUE(std::isnan(c.settings[0].cells[1].max_score));
  EXPECT_NE(as_text(comparison_document(c, false)).find("P/sqrt(n)"), std::string::npos);
  EXPECT_NE(comparison_csv(c).find("frobenius_per_sqrt_n,max_score\n"), std::string::npos);
}

TEST_F(ComparisonTest, OneMeaningIsOneSetting) {
  Record r = run_of("softmax", 0, 0.3);
  r.recipe = {{"name", "quick"}, {"steps", 100}, {"rate", 0.5}, {"inner", {{"a", 1}, {"b", 2}}}};
  add(r);
  r.seed = 1;
  r.recipe = {{"inner", {{"b", 2.0}, {"a", 1}}}, {"rate", 0.5}, {"steps", 100.0}, {"name", "quick"}};
  add(r);
  EXPECT_EQ(result().settings.size(), 1u);
}

TEST_F(ComparisonTest, OverviewsAreOfOnePrecisionAndSayTheirExtent) {
  for (const char* task : {"listops", "text"}) {
    Record r = run_of("softmax", 0, 0.3);
    r.task.name = task;
    r.recipe["max_length"] = 512;
    if (task[0] == 't') r.recipe["steps"] = 7;
    add(r);
  }
  const std::string same = as_markdown(comparison_document(result(), false));
  EXPECT_NE(same.find("| attention | listops  | text  | average  |"), std::string::npos) << same;
  EXPECT_NE(same.find("- listops: 100 steps, at most 512 tokens, float32"), std::string::npos);
  EXPECT_NE(same.find("- text: 7 steps, at most 512 tokens, float32"), std::string::npos);
  EXPECT_NE(same.find("\n7 steps, at most 512 tokens, float32; 2000 test rows"), std::string::npos);
  files.records[1].record.environment.precision = "bfloat16";
  EXPECT_EQ(as_markdown(comparison_document(result(), false)).find("average  |"), std::string::npos);
}

TEST_F(ComparisonTest, IntervalsOfAccuraciesEndAtTheirBounds) {
  add_runs("softmax", {0.1, 0.4});
  add_runs("other", {0.99, 0.6});
  const std::string text = as_markdown(comparison_document(result(), false));
  EXPECT_NE(text.find("\\[0.0, 100.0\\]"), std::string::npos) << text;
  EXPECT_EQ(text.find("\\[-"), std::string::npos);
}

TEST_F(ComparisonTest, TextsOfCsvAreNoFormulas) {
  for (const char* name : {"=1+1", "+1", "-1", "@x", "\tx"}) add(run_of(name, 0, 0.3));
  const std::string csv = comparison_csv(result());
  for (const char* name : {"\"'=1+1\"", "\"'+1\"", "\"'-1\"", "\"'@x\""}) EXPECT_NE(csv.find(name), std::string::npos);
  EXPECT_EQ(csv.find("\"="), std::string::npos);
}

TEST_F(ComparisonTest, TimeComparesOnOneMachineOnly) {
  add_runs("softmax", {0.3});
  Record r = run_of("other", 0, 0.3);
  r.speed.samples_per_second = 50.0;
  r.model.parameters = 1200;
  add(r);
  r = run_of("elsewhere", 0, 0.2);
  r.environment.cpu = "another";
  add(r);
  const Comparison c = result();
  EXPECT_DOUBLE_EQ(c.settings[0].cells[1].relative_time, 2.0);
  EXPECT_TRUE(c.settings[0].cells[1].parameters_differ);
  EXPECT_TRUE(std::isnan(c.settings[0].cells[2].relative_time));
  EXPECT_FALSE(c.settings[0].cells[2].parameters_differ);
}

TEST_F(ComparisonTest, HolmCountsTheComparisonsOfATask) {
  for (const double steps : {100.0, 200.0}) {
    for (const char* attention : {"softmax", "other"}) {
      for (int64_t seed = 0; seed < 3; ++seed) {
        const double gain = attention[0] == 'o' ? 0.02 + 0.003 * static_cast<double>(seed) : 0.0;
        Record r = run_of(attention, seed, 0.3 + gain);
        r.recipe["steps"] = steps;
        add(r);
      }
    }
  }
  const Comparison c = result();
  ASSERT_EQ(c.settings.size(), 2u);
  for (const Setting& setting : c.settings) {
    const Versus& versus = *setting.cells[1].versus;
    EXPECT_NEAR(versus.p_holm, 2 * versus.difference.p, 1e-12);
  }
}

TEST_F(ComparisonTest, NormsCorrelateAtTheLastStep) {
  for (int64_t seed = 0; seed < 4; ++seed) {
    Record r = run_of("softmax", seed, 0.3 + 0.01 * static_cast<double>(seed));
    for (const int64_t step : {50, 100}) {
      r.norms.push_back({{"step", step},
                         {"frobenius_mean", step == 100 ? 9.0 - static_cast<double>(seed) : 1.0},
                         {"jacobian", nullptr}});
    }
    add(r);
  }
  const Comparison c = result();
  ASSERT_EQ(c.settings[0].norms.size(), 1u);
  EXPECT_EQ(c.settings[0].norms[0].norm, "frobenius_mean");
  EXPECT_EQ(c.settings[0].norms[0].correlation.rho, -1.0);
  EXPECT_EQ(c.settings[0].norms[0].correlation.n, 4);
}

TEST_F(ComparisonTest, JsonFitsItsSchema) {
  add_runs("softmax", {0.30, 0.32, 0.31});
  add_runs("better", {0.35, 0.3702, 0.3605});
  add(run_of("alone", 0, 0.2));
  Record r = run_of("diverged", 1, std::nan(""));
  r.status = RunStatus::kDiverged;
  add(r);
  for (int64_t seed = 0; seed < 2; ++seed) {
    r = run_of("elsewhere", seed, 0.17 + 0.001 * static_cast<double>(seed));
    r.environment.cpu = "another";
    r.norms.push_back({{"step", 1}, {"jacobian", seed}});
    add(r);
  }
  r.recipe["steps"] = 7;
  add(r);
  Comparison c = result();
  c.settings[0].cells[1].row_tests.push_back({.seed = 1, .rows = 9, .only_here = 2, .p = 0.5, .p_holm = 1.0});
  c.left_out.emplace_back("a line");
  const SchemaValidator schema(std::string(LRA_SOURCE_DIR) + "/results/schema/lra-comparison-1.schema.json");
  Json json = comparison_json(c);
  EXPECT_EQ(schema.problems(dump_json(json)), "");
  json["published"] = published_rows({"listops"});
  EXPECT_EQ(schema.problems(dump_json(json)), "");
  for (const char* place : {"/settings/0/cells/0/runs/0/seed", "/settings/0/cells/1/mcnemar/0/p_holm", "/baseline",
                            "/settings/0/cells/1/versus_baseline/verdict", "/settings/0/identity/recipe"}) {
    const Json::json_pointer pointer(place);
    Json bad = json;
    ASSERT_TRUE(bad.contains(pointer)) << place;
    bad[pointer.parent_pointer()].erase(pointer.back());
    EXPECT_NE(schema.problems(dump_json(bad)), "") << place;
  }
}

TEST_F(ComparisonTest, SettingsSideBySideOnlyWhenAsked) {
  add_runs("softmax", {0.30, 0.32});
  Record r = run_of("softmax", 0, 0.5);
  r.recipe["steps"] = 7;
  add(r);
  const Comparison c = result();
  EXPECT_EQ(as_text(comparison_document(c, false)).find("side by side"), std::string::npos);
  const std::string text = as_text(comparison_document(c, true));
  EXPECT_NE(text.find("side by side"), std::string::npos);
  EXPECT_NE(text.find(c.settings[0].id + ": recipe quick; recipe.steps "), std::string::npos) << text;
  EXPECT_NE(comparison_latex(c, true).find("side by side"), std::string::npos);
}

TEST_F(ComparisonTest, TimeThatIsWithheldSaysWhy) {
  add_runs("softmax", {0.3});
  Record r = run_of("other", 0, 0.3);
  r.environment.commit = "another";
  r.environment.threads = 8;
  add(r);
  EXPECT_EQ(result().settings[0].cells[1].time_withheld, "commit, threads");
  EXPECT_EQ(result().settings[0].cells[0].time_withheld, "");
}

TEST(ComparisonDocument, LongNamesGetALineOfTheirOwn) {
  const Document document = {{"", {}, {{"name", "figure"}, {{"abcdefghijklmnop", "1"}, {"b", "2"}}}, {"a | b"}}};
  EXPECT_EQ(as_text(document, 16), "name      figure\nabcdefghijklmnop\n               1\nb              2\na | b\n");
  EXPECT_EQ(as_markdown(document), "| name | figure |\n|---|--:|\n| abcdefghijklmnop | 1 |\n| b | 2 |\n\n- a \\| b\n");
}

}  // namespace
}  // namespace lra
