// Accuracy of polynomial attention against its scale, a curve a sequence length (Figure 1 of arXiv 2410.18613). Lengths
// differ in recipe and data by nature; they share a plot where nothing else differs, and no test compares them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "results/comparison_blocks.h"
#include "results/html.h"
#include "results/report_parts.h"

namespace lra {

namespace {

struct SweepPoint {
  int64_t length = 0;
  std::string scale;
  std::optional<double> value;  // of the scale where it is a number
  const Cell* cell = nullptr;
};

struct Sweep {
  std::string task, recipe, variant;
  std::vector<SweepPoint> points;
};

// What the members of a sweep share: all settings but length and the data it cuts, all options but the scale.
std::string key_of(const Setting& setting, const Record& record, const Json& options) {
  Json identity = setting.identity;
  for (const char* field : {"max_length", "padded_length"}) identity["recipe"].erase(field);
  identity.erase("data");
  return dump_json(Json({setting.task, record.data.source, identity, options}));
}

std::optional<double> positive(const std::string& text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0.0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::vector<Sweep> sweeps_of(const Comparison& comparison) {
  std::map<std::string, Sweep> sweeps;
  for (const Setting& setting : comparison.settings) {
    for (const Cell& cell : setting.cells) {
      if (cell.runs.empty()) continue;
      const Record& record = cell.runs.front()->record;
      Json options = record.attention.options;
      if (record.attention.name != "polynomial" || !options.contains("scale")) continue;
      const Json& scale = options.at("scale");
      const std::string text = scale.is_string() ? scale.get<std::string>() : dump_json(scale);
      options.erase("scale");
      Sweep& sweep = sweeps[key_of(setting, record, options)];
      sweep.task = setting.task;
      sweep.recipe = setting.recipe;
      sweep.variant = "power " + (options.contains("power") ? dump_json(options.at("power")) : "unknown");
      sweep.points.push_back({record.task.max_length, text, positive(text), &cell});
    }
  }
  std::vector<Sweep> result;
  for (auto& [key, sweep] : sweeps) {
    std::map<int64_t, std::set<double>> scales;
    for (const SweepPoint& point : sweep.points) {
      if (point.value) scales[point.length].insert(*point.value);
    }
    if (std::none_of(scales.begin(), scales.end(), [](const auto& s) { return s.second.size() >= 2; })) continue;
    std::sort(sweep.points.begin(), sweep.points.end(), [](const SweepPoint& a, const SweepPoint& b) {
      return std::make_tuple(a.length, a.value.value_or(INFINITY), a.scale) <
             std::make_tuple(b.length, b.value.value_or(INFINITY), b.scale);
    });
    result.push_back(std::move(sweep));
  }
  return result;
}

std::string figure_of(ReportContext& context, const Sweep& sweep) {
  Plot plot{.x_label = "scale", .y_label = "test accuracy in %"};
  plot.log_x = 2;
  Table table{{"length", "scale", "runs", "test % ", "95 %"}, {}};
  bool words = false;
  for (const SweepPoint& point : sweep.points) {
    const Cell& cell = *point.cell;
    const std::string length = std::to_string(point.length);
    table.rows.push_back({length, point.scale, std::to_string(cell.runs.size()),
                          percent(cell.test.mean) + (cell.chance_level ? "c" : " "), interval_text(cell.interval)});
    words = words || !point.value;
    if (!point.value) continue;
    if (plot.series.empty() || plot.series.back().label != length) {
      plot.series.push_back({
          .style = static_cast<int>(plot.series.size()),
          .label = length,
          .points = {},
      });
    }
    Series& series = plot.series.back();
    series.points.push_back({*point.value, 100.0 * cell.test.mean});
    const bool known = std::isfinite(cell.interval.low);
    series.intervals.push_back({known ? std::max(0.0, 100.0 * cell.interval.low) : series.points.back().y,
                                known ? std::min(100.0, 100.0 * cell.interval.high) : series.points.back().y});
  }
  return context.figure(
      plot, fmt::format("{}, recipe {}, {}", sweep.task, sweep.recipe, sweep.variant),
      fmt::format("A curve a sequence length, which stands at its end; bars are 95 % intervals, cut at 0 and 100.{}",
                  words ? " Scales that are no number stand in the table only." : ""),
      table);
}

}  // namespace

std::string sweep_html(ReportContext& context) {
  std::string html;
  for (const Sweep& sweep : sweeps_of(context.comparison)) html += figure_of(context, sweep);
  if (html.empty()) return "";
  return "<section id=\"sweep\">\n<h2>Scale sweep by length</h2>\n<p>Polynomial attention. Lengths are different "
         "settings: they "
         "share a plot, but no test compares them.</p>\n<div class=\"figures\">\n" +
         html + "</div>\n</section>\n";
}

}  // namespace lra
