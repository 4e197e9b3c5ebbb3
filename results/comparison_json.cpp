// A comparison for other programs: CSV with a row a cell, and JSON with all of it.
#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "results/comparison_output.h"

namespace lra {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json interval_json(const Interval& i) { return {{"low", number(i.low)}, {"high", number(i.high)}}; }

Json sample_json(const Sample& sample) {
  return {{"n", sample.n}, {"mean", number(sample.mean)}, {"deviation", number(sample.deviation)}};
}

Json versus_json(const std::optional<Versus>& versus) {
  if (!versus) return nullptr;
  const Difference& d = versus->difference;
  return {{"test", versus->test.empty() ? Json(nullptr) : Json(versus->test)},
          {"untested_because", versus->reason.empty() ? Json(nullptr) : Json(versus->reason)},
          {"difference", number(d.difference)},
          {"interval", interval_json(d.interval)},
          {"statistic", number(d.statistic)},
          {"degrees", number(d.degrees)},
          {"p", number(d.p)},
          {"p_holm", number(versus->p_holm)},
          {"verdict", verdict_name(versus->verdict)}};
}

Json row_tests_json(const Cell& cell) {
  Json tests = Json::array();
  for (const RowTest& t : cell.row_tests) {
    tests.push_back({{"seed", t.seed},
                     {"rows", t.rows},
                     {"only_here", t.only_here},
                     {"only_baseline", t.only_baseline},
                     {"p", number(t.p)},
                     {"p_holm", number(t.p_holm)}});
  }
  return tests;
}

Json cell_json(const Cell& cell) {
  Json runs = Json::array();
  for (const RecordFile* run : cell.runs) {
    const Record& r = run->record;
    runs.push_back({{"file", run->path.string()},
                    {"seed", r.seed ? Json(*r.seed) : Json(nullptr)},
                    {"test_accuracy", number(r.best->test_accuracy)},
                    {"commit", r.environment.commit},
                    {"dirty", r.environment.dirty}});
  }
  return {{"attention", cell.attention},
          {"runs", runs},
          {"without", cell.without},
          {"test_accuracy", sample_json(cell.test)},
          {"interval", interval_json(cell.interval)},
          {"interval_kind", cell.runs.empty()       ? "none"
                            : cell.runs.size() == 1 ? "Wilson, test rows"
                                                    : "t, seeds"},
          {"last_test_accuracy", sample_json(cell.last)},
          {"chance_level", cell.chance_level},
          {"versus_baseline", versus_json(cell.versus)},
          {"mcnemar", row_tests_json(cell)},
          {"ms_per_sample", number(cell.ms_per_sample)},
          {"ms_per_sample_runs", cell.timed_runs},
          {"ms_per_sample_withheld_for", cell.ms_withheld.empty() ? Json(nullptr) : Json(cell.ms_withheld)},
          {"relative_time", number(cell.relative_time)},
          {"relative_time_withheld_for", cell.time_withheld.empty() ? Json(nullptr) : Json(cell.time_withheld)},
          {"peak_rss_bytes", cell.peak_rss_bytes},
          {"flops_per_sample", number(cell.flops_per_sample)},
          {"parameters", cell.parameters},
          {"parameters_differ", cell.parameters_differ},
          {"frobenius_per_sqrt_n", number(cell.norm_per_sqrt_n)},
          {"max_score", number(cell.max_score)}};
}

// RFC 4180: texts are quoted, numbers in full; unknown is an empty field. A text that a spreadsheet would take for a
// formula gets a quote in front.
std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return dump_json(value);
  const auto words = value.get<std::string>();
  std::string text = "\"";
  if (!words.empty() && std::string_view("=+-@\t\r").find(words[0]) != std::string_view::npos) text += '\'';
  for (const char c : words) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

Json csv_row(const Setting& setting, const Cell& cell) {
  const Versus versus = cell.versus.value_or(Versus{});
  double least = kUndefined;  // of McNemar's tests
  for (const RowTest& test : cell.row_tests) least = std::fmin(least, test.p_holm);
  return {{"task", setting.task},
          {"recipe", setting.recipe},
          {"setting", setting.id},
          {"selected_on_test", setting.identity.is_object() && selected_on_test(setting.identity.at("recipe"))},
          {"attention", cell.attention},
          {"runs", cell.runs.size()},
          {"not_counted", cell.without.size()},
          {"test_accuracy", number(cell.test.mean)},
          {"test_deviation", number(cell.test.deviation)},
          {"test_low", number(cell.interval.low)},
          {"test_high", number(cell.interval.high)},
          {"last_test_accuracy", number(cell.last.mean)},
          {"chance", number(setting.chance)},
          {"chance_level", cell.chance_level},
          {"difference", number(versus.difference.difference)},
          {"difference_low", number(versus.difference.interval.low)},
          {"difference_high", number(versus.difference.interval.high)},
          {"p", number(versus.difference.p)},
          {"p_holm", number(versus.p_holm)},
          {"verdict", cell.versus ? Json(verdict_name(versus.verdict)) : Json(nullptr)},
          {"mcnemar_seeds", cell.row_tests.size()},
          {"mcnemar_smallest_p_holm", number(least)},
          {"ms_per_sample", number(cell.ms_per_sample)},
          {"ms_per_sample_withheld_for", cell.ms_withheld.empty() ? Json(nullptr) : Json(cell.ms_withheld)},
          {"relative_time", number(cell.relative_time)},
          {"peak_rss_bytes", cell.peak_rss_bytes},
          {"flops_per_sample", number(cell.flops_per_sample)},
          {"parameters", cell.parameters},
          {"frobenius_per_sqrt_n", number(cell.norm_per_sqrt_n)},
          {"max_score", number(cell.max_score)}};
}

}  // namespace

Json comparison_json(const Comparison& comparison) {
  Json settings = Json::array();
  for (const Setting& setting : comparison.settings) {
    Json cells = Json::array(), norms = Json::array();
    for (const Cell& cell : setting.cells) cells.push_back(cell_json(cell));
    for (const NormCorrelation& n : setting.norms) {
      norms.push_back({{"norm", n.norm}, {"n", n.correlation.n}, {"spearman", number(n.correlation.rho)}});
    }
    settings.push_back({{"id", setting.id},
                        {"task", setting.task},
                        {"recipe", setting.recipe},
                        {"identity", setting.identity},
                        {"differs", setting.differs},
                        {"chance", number(setting.chance)},
                        {"test_examples", setting.test_examples},
                        {"cells", cells},
                        {"norms", norms},
                        {"notes", setting.row_notes}});
  }
  return {{"schema", "lra-comparison/1"},
          {"baseline", comparison.baseline},
          {"confidence", kConfidence},
          {"settings", settings},
          {"left_out", comparison.left_out}};
}

std::string comparison_csv(const Comparison& comparison) {
  std::string text;
  const auto add = [&](const Json& row, bool names) {
    std::string line;
    for (const auto& [name, value] : row.items()) {
      line += (line.empty() ? "" : ",") + (names ? name : csv_field(value));
    }
    text += line + '\n';
  };
  add(csv_row({}, {}), true);
  for (const Setting& setting : comparison.settings) {
    for (const Cell& cell : setting.cells) add(csv_row(setting, cell), false);
  }
  return text;
}

}  // namespace lra
