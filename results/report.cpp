#include "results/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/util/build_info.h"
#include "lib/util/files.h"
#include "results/comparison_blocks.h"
#include "results/html.h"
#include "results/report_parts.h"

namespace lra {

namespace {

std::vector<std::string> tasks_of(const Comparison& comparison) {
  std::vector<std::string> tasks;
  for (const Setting& setting : comparison.settings) {
    if (tasks.empty() || tasks.back() != setting.task) tasks.push_back(setting.task);
  }
  return tasks;
}

std::string anchor(const Setting& setting) {
  return fmt::format("s-{}-{}", hex64(hash_bytes(setting.task)).substr(0, 4), setting.id);
}

std::string navigation(const Comparison& comparison, const std::string& sweep) {
  std::string items;
  const auto add = [&](const std::string& target, const std::string& name) {
    items += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", target, html_escaped(name));
  };
  for (const Setting& setting : comparison.settings) {
    add(anchor(setting), title_of(comparison, setting));
  }
  if (!sweep.empty()) add("sweep", "scale sweep");
  add("legend", "how to read");
  add("provenance", "provenance");
  return "<nav aria-label=\"Sections\"><ul>\n" + items + "</ul></nav>\n";
}

// Every pair of McNemar's tests.
std::string pairs_html(const Setting& setting) {
  Table table{{"attention", "seed", "rows", "only it is right", "only the baseline is", "p", "p, Holm"}, {}};
  for (const Cell& cell : setting.cells) {
    for (const RowTest& t : cell.row_tests) {
      table.rows.push_back({cell.attention, std::to_string(t.seed), std::to_string(t.rows), std::to_string(t.only_here),
                            std::to_string(t.only_baseline), figure(t.p, "{:.2g}"), figure(t.p_holm, "{:.2g}")});
    }
  }
  if (table.rows.empty()) return "";
  return "<details><summary>Each seed</summary>\n" + html_table(table, "McNemar's tests") + "</details>\n";
}

std::string setting_html(ReportContext& context, const Setting& setting) {
  const std::string& baseline = context.comparison.baseline;
  const Block accuracy = accuracy_block(setting, baseline);
  std::string html = fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n", anchor(setting),
                                 html_escaped(title_of(context.comparison, setting)));
  html += fmt::format("<p class=\"quiet\">Setting {}. {}.</p>\n", setting.id, html_escaped(accuracy.lines.front()));
  for (size_t i = 1; i < accuracy.lines.size(); ++i) {
    html += "<p class=\"quiet\">" + html_escaped(accuracy.lines[i]) + "</p>\n";
  }
  const auto add = [&](const Block& block, const std::string& caption) {
    if (!block.table.header.empty()) html += html_table(block.table, caption);
    if (!block.notes.empty()) html += "<ul class=\"notes\">\n" + html_lines(block.notes, "li") + "</ul>\n";
  };
  add(accuracy, fmt::format("Test accuracy, against {}", baseline));
  add(rows_block(setting, baseline), fmt::format("The same test rows as {}, seed by seed (McNemar)", baseline));
  html += pairs_html(setting);
  add(cost_block(setting), "Training time, memory and size");
  html += figures_html(context, setting);
  html += maps_html(context, setting);
  return html + "</section>\n";
}

std::string problems_html(const std::vector<std::string>& problems, const std::vector<std::string>& left_out) {
  if (problems.empty() && left_out.empty()) return "";
  std::string html = "<section id=\"lacks\">\n<h2>What this report lacks</h2>\n";
  if (!problems.empty()) html += "<ul>\n" + html_lines(problems, "li") + "</ul>\n";
  if (!left_out.empty()) html += "<p>Records left out:</p>\n<ul>\n" + html_lines(left_out, "li") + "</ul>\n";
  return html + "</section>\n";
}

std::string blocks_html(const Document& document, const char* id) {
  std::string html = fmt::format("<section id=\"{}\">\n", id);
  int level = 2;
  for (const Block& block : document) {
    html += html_block(block, level);
    level = 3;
  }
  return html + "</section>\n";
}

}  // namespace

Report html_report(const Comparison& comparison, const ReportOptions& options) {
  ReportContext context(comparison);
  const std::string title = fmt::format("Attention variants on {}", fmt::join(tasks_of(comparison), ", "));
  const std::string sweep = sweep_html(context);
  std::string sections;
  for (const Setting& setting : comparison.settings) sections += setting_html(context, setting);
  context.note_missing_logs();

  std::string html = fmt::format("<h1>{}</h1>\n<p class=\"quiet\">Long Range Arena, written by lra-compare {}</p>\n",
                                 html_escaped(title), html_escaped(build_info().version));
  html += summary_html(comparison) + navigation(comparison, sweep);
  Document overview;
  for (const Overview& part : overviews(comparison)) overview.push_back(overview_block(part));
  if (!overview.empty()) html += blocks_html(overview, "overview");
  if (options.allow_mixed) {
    const Document mixed = mixed_document(comparison);
    if (!mixed.empty()) html += blocks_html(mixed, "mixed");
  }
  html += sections + sweep;
  if (!options.published.empty()) html += blocks_html(options.published, "published");
  Block how = legend(comparison.baseline);
  how.heading = "How to read the tables";
  html +=
      blocks_html({how}, "legend") + problems_html(context.problems, comparison.left_out) + provenance_html(comparison);
  return {html_page(title, html), std::move(context.problems)};
}

}  // namespace lra
