// A comparison as LaTeX tables (booktabs) to be taken into a paper with \input.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string_view>

#include "results/comparison_blocks.h"
#include "results/comparison_output.h"
#include "results/latex.h"

namespace lra {

namespace {

constexpr const char* kHead =
    "% Needs \\usepackage{booktabs}. Nothing is set in bold: rows within the noise have no order.\n";

std::string verdict_mark(const Cell& cell) {
  if (!cell.versus) return "";
  if (cell.versus->verdict == Verdict::kBetter) return "$^{+}$";
  return cell.versus->verdict == Verdict::kWorse ? "$^{-}$" : "";
}

std::string chance_mark(bool chance_level) { return chance_level ? "$^{c}$" : ""; }

// A row of accuracies and below it a row of intervals, each with its number of runs.
std::string overview_rows(const Overview& overview, const std::string& attention) {
  std::string means = latex_name(attention), intervals;
  for (const Setting* setting : overview.columns) {
    const Cell* cell = cell_of(*setting, attention);
    means += " & ";
    intervals += " & ";
    if (cell == nullptr) {
      means += "--";
      continue;
    }
    means += percent(cell->test.mean) + chance_mark(cell->chance_level) + verdict_mark(*cell);
    intervals += fmt::format("{{\\scriptsize ${}_{{{}}}$}}", interval_text(cell->interval), cell->runs.size());
  }
  const Average average = average_of(overview, attention);
  means += " & " + (average.missing.empty() ? percent(average.mean) + chance_mark(average.chance_level) : "--");
  return means + " \\\\\n" + intervals + " & \\\\[2pt]\n";
}

std::string overview_table(const Overview& overview, const std::string& baseline, int number) {
  std::string header = "attention";
  std::vector<std::string> names;
  for (const Setting* setting : overview.columns) {
    names.push_back(latex_escaped(setting->task));
    header += " & " + names.back();
  }
  std::string rows;
  for (const std::string& attention : overview.attentions) rows += overview_rows(overview, attention);
  const std::string caption = fmt::format(
      "Test accuracy in \\%, {}: mean over runs, 95\\,\\% interval with the number of runs below. Intervals: "
      "Student's $t$ "
      "over "
      "seeds; with one run Wilson's, of its test rows alone; cut at 0 and 100. $^{{c}}$: not shown to be above chance, "
      "of "
      "an average one of its parts. "
      "$^{{+}}$, $^{{-}}$: better, worse than {} at $p < 0.05$ after Holm's correction; without a mark the difference "
      "is "
      "within the noise or untested. Average over {}; withheld where one is missing.",
      latex_escaped(overview.title), latex_name(baseline), fmt::join(names, ", "));
  return latex_float(caption, fmt::format("p{{0.21\\linewidth}}{}r", std::string(names.size(), 'r')),
                     header + " & average", rows, overview.notes, number);
}

}  // namespace

std::string comparison_latex(const Comparison& comparison, bool allow_mixed) {
  std::string text = kHead;
  int number = 0;
  for (const Overview& overview : overviews(comparison)) {
    text += overview_table(overview, comparison.baseline, ++number);
  }
  Document document = allow_mixed ? mixed_document(comparison) : Document{};
  for (const Setting& setting : comparison.settings) {
    document.push_back(accuracy_block(setting, comparison.baseline));
    for (Block block : {rows_block(setting, comparison.baseline), cost_block(setting)}) {
      if (block.table.header.empty()) continue;
      block.heading = fmt::format("{}, recipe {} (setting {})", setting.task, setting.recipe, setting.id);
      document.push_back(std::move(block));
    }
  }
  document.push_back(legend(comparison.baseline));
  if (!comparison.left_out.empty()) document.push_back({"Left out", comparison.left_out, {}, {}});
  return text + as_latex(document, number);
}

}  // namespace lra
