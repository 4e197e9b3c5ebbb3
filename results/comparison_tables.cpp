// The tables of a comparison: an overview over tasks, then accuracy and cost of each setting.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "results/comparison_output.h"

namespace lra {

namespace {

// "37.25" or "-".
std::string percent(double share, const char* format = "{:.2f}") {
  return std::isfinite(share) ? fmt::format(fmt::runtime(format), 100.0 * share) : "-";
}

std::string figure(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

std::string interval_text(const Interval& interval) {
  return std::isfinite(interval.low) ? percent(interval.low, "{:.1f}") + "-" + percent(interval.high, "{:.1f}") : "-";
}

std::string mark(const Cell& cell) { return cell.chance_level ? "c" : " "; }

Block accuracy_block(const Setting& setting, const std::string& baseline) {
  Block block;
  block.heading = fmt::format("{}, recipe {} (setting {})", setting.task, setting.recipe, setting.id);
  block.lines.push_back(fmt::format("{} test rows; always answering the commonest class gives {} %",
                                    setting.test_examples, percent(setting.chance, "{:.1f}")));
  if (!setting.differs.empty()) {
    block.lines.push_back(fmt::format("Not comparable with the other settings of {}; here: {}", setting.task,
                                      fmt::join(setting.differs, ", ")));
  }
  block.table.header = {"attention", "runs", "test % ", "95 %", "last %", "diff.", "p", "verdict"};
  for (const Cell& cell : setting.cells) {
    std::vector<std::string> row = {cell.attention,
                                    std::to_string(cell.runs.size()),
                                    percent(cell.test.mean) + mark(cell),
                                    interval_text(cell.interval),
                                    percent(cell.last.mean),
                                    "-",
                                    "-",
                                    "-"};
    if (cell.attention == baseline) row.back() = "baseline";
    if (cell.versus) {
      row[5] = percent(cell.versus->difference.difference, "{:+.2f}");
      row[6] = figure(cell.versus->p_holm, "{:.2g}");
      row[7] = cell.versus->verdict == Verdict::kUntested ? cell.versus->reason : verdict_name(cell.versus->verdict);
    }
    block.table.rows.push_back(std::move(row));
    if (!cell.without.empty()) {
      block.notes.push_back(fmt::format("{}: in no mean: {}", cell.attention, fmt::join(cell.without, ", ")));
    }
  }
  const auto has_baseline = [&](const Cell& cell) { return cell.attention == baseline && !cell.runs.empty(); };
  if (std::none_of(setting.cells.begin(), setting.cells.end(), has_baseline)) {
    block.notes.push_back(fmt::format("No completed run of {} in this setting: nothing to compare with.", baseline));
  }
  for (const NormCorrelation& norm : setting.norms) {
    const Correlation& c = norm.correlation;
    block.notes.push_back(fmt::format("{} after the last step against test accuracy: Spearman {} over {} runs, p {}",
                                      norm.norm, figure(c.rho, "{:+.2f}"), c.n, figure(c.p, "{:.2g}")));
  }
  return block;
}

Block cost_block(const Setting& setting) {
  Block block;
  block.table.header = {"attention", "ms/sample", "relative", "memory MB", "GFLOP/sample", "parameters"};
  for (const Cell& cell : setting.cells) {
    if (cell.runs.empty()) continue;
    block.table.rows.push_back({cell.attention, figure(cell.ms_per_sample, "{:.3g}"),
                                figure(cell.relative_time, "{:.2f}x"),
                                figure(static_cast<double>(cell.peak_rss_bytes) * 1e-6, "{:.0f}"),
                                figure(cell.flops_per_sample * 1e-9, "{:.3g}"),
                                fmt::format("{}{}", cell.parameters, cell.parameters_differ ? "!" : " ")});
  }
  return block;
}

// Attention by task for one recipe name: only tasks with a single setting have a figure to show.
void add_overview(Document& document, const Comparison& comparison, const std::string& recipe) {
  std::vector<std::pair<std::string, std::vector<const Setting*>>> by_task;  // settings are sorted by task
  for (const Setting& setting : comparison.settings) {
    if (setting.recipe != recipe) continue;
    if (by_task.empty() || by_task.back().first != setting.task) by_task.push_back({setting.task, {}});
    by_task.back().second.push_back(&setting);
  }
  Block block;
  std::vector<std::string> names;
  std::vector<const Setting*> columns;
  std::vector<std::string> attentions;  // the baseline first, then as they come
  for (const auto& [task, settings] : by_task) {
    if (settings.size() > 1) {
      block.notes.push_back(fmt::format("{} has {} settings and stands only below.", task, settings.size()));
      continue;
    }
    names.push_back(task);
    columns.push_back(settings.front());
    for (const Cell& cell : settings.front()->cells) {
      if (std::find(attentions.begin(), attentions.end(), cell.attention) == attentions.end()) {
        attentions.insert(cell.attention == comparison.baseline ? attentions.begin() : attentions.end(),
                          cell.attention);
      }
    }
  }
  if (columns.size() < 2) return;
  block.heading = fmt::format("Test accuracy in %, recipe {}", recipe);
  block.table.header = {"attention"};
  for (const std::string& name : names) block.table.header.push_back(name + ' ');
  block.table.header.emplace_back("average");
  for (const std::string& attention : attentions) {
    std::vector<std::string> row = {attention};
    std::vector<double> means;
    for (const Setting* setting : columns) {
      const auto cell = std::find_if(setting->cells.begin(), setting->cells.end(),
                                     [&](const Cell& c) { return c.attention == attention && !c.runs.empty(); });
      row.push_back(cell == setting->cells.end() ? "- " : percent(cell->test.mean) + mark(*cell));
      if (cell != setting->cells.end()) means.push_back(cell->test.mean);
    }
    row.push_back(means.size() == columns.size() ? percent(summarise(means).mean) : "-");
    block.table.rows.push_back(std::move(row));
  }
  block.notes.push_back(fmt::format("average: over {}; none where a task is missing.", fmt::join(names, ", ")));
  document.push_back(std::move(block));
}

Block legend(const std::string& baseline) {
  Block block;
  block.heading = "Legend";
  block.lines = {
      "test %: mean over runs of the test accuracy at the best validation accuracy; last %: after the last step.",
      "95 %: interval by Student's t over seeds; with one run Wilson's, of its test rows alone.",
      "c: chance level, the interval reaches down to the commonest class.",
      fmt::format("diff.: to {}, in points; over the shared seeds where there are two, else of the means.", baseline),
      "p: paired t over shared seeds, else Welch's; Holm's correction over all comparisons of the task.",
      "verdict: within noise where p is 0.05 or more; one seed, no spread: no test can be made.",
      "Rows are sorted by test %, which ranks nothing within the noise.",
      fmt::format(
          "relative: training time to {} on equal machine, threads and commit; memory: the largest of the runs; "
          "!: parameters differ by over 10 %.",
          baseline)};
  return block;
}

}  // namespace

Document comparison_document(const Comparison& comparison) {
  Document document;
  std::vector<std::string> recipes;
  for (const Setting& setting : comparison.settings) {
    if (std::find(recipes.begin(), recipes.end(), setting.recipe) == recipes.end()) recipes.push_back(setting.recipe);
  }
  for (const std::string& recipe : recipes) add_overview(document, comparison, recipe);
  for (const Setting& setting : comparison.settings) {
    document.push_back(accuracy_block(setting, comparison.baseline));
    Block cost = cost_block(setting);
    if (!cost.table.rows.empty()) document.push_back(std::move(cost));
  }
  document.push_back(legend(comparison.baseline));
  if (!comparison.left_out.empty()) document.push_back({"Left out", comparison.left_out, {}, {}});
  return document;
}

}  // namespace lra
