// Compares runs: those of one task, recipe, data, protocol and precision make a setting, those of one attention in it a
// cell. Runs of different settings are never averaged and never tested against each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/util/json.h"
#include "results/record_files.h"
#include "results/statistics.h"

namespace lra {

// In the order of the benchmark's papers, which is the order of settings.
inline constexpr std::string_view kTaskNames[] = {"listops", "text", "retrieval", "image", "pathfinder"};

enum class Verdict { kUntested, kWithinNoise, kBetter, kWorse };
const char* verdict_name(Verdict verdict);  // "untested", "within noise", …

// A cell against the baseline of its setting.
struct Versus {
  std::string test;    // "paired t", "Welch t"; empty: none could be made
  std::string reason;  // why there was none
  Difference difference;
  double p_holm = kUndefined;  // corrected over all comparisons of the task
  Verdict verdict = Verdict::kUntested;
};

// The models of one seed on the same test rows: what only one of them gets right.
struct RowTest {
  int64_t seed = 0, rows = 0, only_here = 0, only_baseline = 0;
  double p = kUndefined;       // McNemar
  double p_holm = kUndefined;  // corrected over all such tests of the task
};

struct Cell {
  std::string attention;                // canonical spec
  std::vector<const RecordFile*> runs;  // completed, by seed
  std::vector<const RecordFile*> uncounted;
  std::vector<std::string> without;    // "seed 3 diverged": why each of these counts in no mean
  Sample test, last;                   // accuracies on the test split at best validation, and after the last step
  Interval interval;                   // of test: over seeds, or of the one run's rows (Wilson)
  bool chance_level = false;           // not shown to be above chance
  std::vector<std::string> at_chance;  // seeds of the runs that, each by its own test rows, are not
  double ms_per_sample = kUndefined;   // training, on the machine and build of the setting alone
  size_t timed_runs = 0;               // those it is the mean of
  std::string ms_withheld;             // in what its runs differ from that machine: "CPU, threads"
  double relative_time = kUndefined;   // to the baseline, among runs of equal machine and build only
  std::string time_withheld;           // in what these differ: "commit, threads, uncommitted changes"
  double flops_per_sample = kUndefined;
  int64_t peak_rss_bytes = 0, parameters = 0;
  double norm_per_sqrt_n = kUndefined;  // ||P|| / sqrt n after the last step, mean over layers, heads and runs
  double max_score = kUndefined;        // largest |S| after the last step, of all runs
  bool parameters_differ = false;       // by over 10 % from the baseline
  std::optional<Versus> versus;         // none for the baseline itself or without one
  std::vector<RowTest> row_tests;       // by seed, beside `versus`
};

struct NormCorrelation {
  std::string norm;  // key of the record's norms
  Correlation correlation;
};

struct Setting {
  std::string id;  // 8 digits of a hash of `identity`
  std::string task, recipe;
  Json identity;                     // fields of the recipe, data, protocol, precision
  std::vector<std::string> differs;  // "recipe.steps 100": fields in which settings of this task differ
  double chance = kUndefined;        // share of the commonest class of the tested rows, at least 1 / classes
  std::string machine;               // text of machine_of that the most cells have runs on
  int64_t test_examples = 0;
  std::vector<Cell> cells;             // the baseline first, then by test accuracy
  std::vector<NormCorrelation> norms;  // over completed runs that have the norm
  std::vector<std::string> row_notes;  // which seeds could not be compared row by row, and why
};

struct Comparison {
  std::string baseline;
  std::vector<Setting> settings;      // by task, recipe, length, id
  std::vector<std::string> left_out;  // one line each
};

// `files` outlives the result. An empty `task` takes all.
Comparison compare(const RecordFiles& files, const std::string& baseline, const std::string& task);

// "seed 3", "no seed"
std::string seed_text(const Record& record);
// Speeds compare only where all of this is equal; another commit may be faster.
Json machine_of(const EnvironmentRecord& environment);
// The runs of a cell whose speed is known, by the text of their machine.
std::map<std::string, std::vector<const RecordFile*>> machines_of(const Cell& cell);
// Times of all cells; relative ones where there is a baseline.
void fill_times(Setting& setting, const Cell* baseline);
// Norm of each layer and head at the last step that has it, and the mean of these.
std::vector<double> last_norms(const Record& record, const char* key);
double last_norm(const Record& record, const char* key);

}  // namespace lra
