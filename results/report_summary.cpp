// What a comparison says, in plain words. Nothing within the noise is called better, and nothing at all the best.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "results/comparison_blocks.h"
#include "results/html.h"
#include "results/report_parts.h"

namespace lra {

namespace {

class Lines {
 public:
  // `kind` is a class of the style sheet, `sign` tells the lines apart without colour.
  void add(const char* kind, const char* sign, const std::string& text) {
    html_ += fmt::format("<li class=\"{}\" data-mark=\"{}\">{}</li>\n", kind, sign, html_escaped(text));
  }
  const std::string& html() const { return html_; }

 private:
  std::string html_;
};

std::string points(double difference) {
  return fmt::format("{}{:.2f} points", difference < 0.0 ? "−" : "+", std::abs(100.0 * difference));
}

// The trained models of one seed can be told apart where attentions cannot.
std::string row_test_text(const Cell& cell) {
  if (cell.row_tests.size() != 1) return "";
  const RowTest& test = cell.row_tests.front();
  return fmt::format("; seed {} on the same rows: McNemar p {:.2g}", test.seed, test.p_holm);
}

std::string tested(const Cell& cell) {
  const Difference& d = cell.versus->difference;
  return fmt::format("{}, 95 % interval {}, p {:.2g} after Holm's correction, {}", points(d.difference),
                     difference_interval_text(d.interval), cell.versus->p_holm, cell.versus->test);
}

void add_verdicts(Lines& lines, const Setting& setting, const std::string& baseline) {
  std::vector<std::string> alike, untested;
  bool one_seed = false;
  for (const Cell& cell : setting.cells) {
    if (!cell.versus) continue;
    const std::string difference = points(cell.versus->difference.difference);
    switch (cell.versus->verdict) {
      case Verdict::kBetter:
        lines.add("better", "▲", fmt::format("{} is better than {}: {}.", cell.attention, baseline, tested(cell)));
        break;
      case Verdict::kWorse:
        lines.add("worse", "▼", fmt::format("{} is worse than {}: {}.", cell.attention, baseline, tested(cell)));
        break;
      case Verdict::kWithinNoise:
        alike.push_back(fmt::format("{} ({}, p {:.2g})", cell.attention, difference, cell.versus->p_holm));
        break;
      case Verdict::kUntested:
        one_seed = one_seed || cell.versus->reason == "one seed";
        untested.push_back(
            fmt::format("{} ({}, {}{})", cell.attention, difference, cell.versus->reason, row_test_text(cell)));
    }
  }
  if (!alike.empty()) {
    lines.add(
        "alike", "≈",
        fmt::format("Within the noise of {}, so neither better nor worse: {}.", baseline, fmt::join(alike, "; ")));
  }
  if (!untested.empty()) {
    lines.add("open", "?",
              fmt::format("Not tested against {}: {}.{}", baseline, fmt::join(untested, "; "),
                          one_seed ? " One seed says nothing of the noise between seeds." : ""));
  }
}

void add_state(Lines& lines, const Setting& setting, const std::string& baseline) {
  if (selected_on_test(setting.identity.at("recipe"))) lines.add("open", "!", fmt::format("{}.", kSelectedOnTest));
  if (cell_of(setting, baseline) == nullptr) {
    lines.add("open", "?", fmt::format("No completed run of {} here: nothing to compare with.", baseline));
  }
  std::vector<std::string> chance, uncounted;
  for (const Cell& cell : setting.cells) {
    if (cell.chance_level) chance.push_back(cell.attention);
    if (!cell.without.empty()) {
      uncounted.push_back(fmt::format("{} ({})", cell.attention, fmt::join(cell.without, ", ")));
    }
  }
  if (!chance.empty()) {
    lines.add("open", "○",
              fmt::format("Not shown to be above chance ({} %): {}.", percent(setting.chance, "{:.1f}"),
                          fmt::join(chance, ", ")));
  }
  if (!uncounted.empty()) lines.add("open", "!", fmt::format("In no mean: {}.", fmt::join(uncounted, "; ")));
}

std::string setting_summary(const Comparison& comparison, const Setting& setting) {
  size_t least = setting.cells.front().runs.size(), most = least;
  for (const Cell& cell : setting.cells) {
    least = std::min(least, cell.runs.size());
    most = std::max(most, cell.runs.size());
  }
  const std::string runs = least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
  Lines lines;
  add_verdicts(lines, setting, comparison.baseline);
  add_state(lines, setting, comparison.baseline);
  return fmt::format(
      "<h3>{}</h3>\n<p>{} variants, {} completed run{} each, {} test rows.</p>\n<ul class=\"summary\">\n{}</ul>\n",
      html_escaped(title_of(comparison, setting)), setting.cells.size(), runs, most == 1 ? "" : "s",
      setting.test_examples, lines.html());
}

std::string alone_line(const Comparison& comparison, const Setting& setting) {
  const Cell& cell = setting.cells.front();
  std::string line = fmt::format("{}: {}", title_of(comparison, setting), cell.attention);
  if (!cell.runs.empty())
    line +=
        fmt::format(", {} %, {} run{}", percent(cell.test.mean), cell.runs.size(), cell.runs.size() == 1 ? "" : "s");
  if (cell.chance_level)
    line += fmt::format(", not shown to be above chance ({} %)", percent(setting.chance, "{:.1f}"));
  if (selected_on_test(setting.identity.at("recipe"))) line += fmt::format("; {}", kSelectedOnTest);
  if (!cell.without.empty()) line += fmt::format("; in no mean: {}", fmt::join(cell.without, ", "));
  return line;
}

// What a grid still lacks.
std::vector<std::string> missing_cells(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const Overview& overview : overviews(comparison)) {
    for (const std::string& attention : overview.attentions) {
      const Average average = average_of(overview, attention);
      if (average.missing.empty()) continue;
      lines.push_back(fmt::format("{} has no completed run on {} ({}), hence no average over tasks.", attention,
                                  fmt::join(average.missing, ", "), overview.title));
    }
  }
  return lines;
}

}  // namespace

std::string summary_html(const Comparison& comparison) {
  size_t runs = 0;
  std::set<std::string> attentions, tasks;
  for (const Setting& setting : comparison.settings) {
    tasks.insert(setting.task);
    for (const Cell& cell : setting.cells) {
      runs += cell.runs.size();
      attentions.insert(cell.attention);
    }
  }
  std::string html = fmt::format(
      "<section id=\"summary\">\n<h2>Summary</h2>\n<p>{} completed run{} of {} attention variant{} on {} task{} in {} "
      "setting{}. Each is compared with <span class=\"name\">{}</span>, within one setting only: the same recipe, "
      "data, "
      "protocol and precision.</p>\n",
      runs, runs == 1 ? "" : "s", attentions.size(), attentions.size() == 1 ? "" : "s", tasks.size(),
      tasks.size() == 1 ? "" : "s", comparison.settings.size(), comparison.settings.size() == 1 ? "" : "s",
      html_escaped(comparison.baseline));
  std::vector<std::string> alone;  // nothing to compare
  for (const Setting& setting : comparison.settings) {
    if (setting.cells.size() > 1) {
      html += setting_summary(comparison, setting);
    } else {
      alone.push_back(alone_line(comparison, setting));
    }
  }
  if (!alone.empty()) html += "<h3>One variant only</h3>\n<ul>\n" + html_lines(alone, "li") + "</ul>\n";
  const std::vector<std::string> missing = missing_cells(comparison);
  if (!missing.empty()) html += "<h3>Missing cells</h3>\n<ul>\n" + html_lines(missing, "li") + "</ul>\n";
  if (!comparison.left_out.empty()) {
    html += fmt::format("<p>{} records could not be used: see <a href=\"#lacks\">what this report lacks</a>.</p>\n",
                        comparison.left_out.size());
  }
  return html + "</section>\n";
}

}  // namespace lra
