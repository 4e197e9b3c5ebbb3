// Accuracy of polynomial attention against its scale, a curve a sequence length (Figure 1 of arXiv 2410.18613). Lengths
// differ in recipe and data by nature; they share a plot where nothing else differs, and no test compares them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "lib/util/program.h"
#include "results/comparison_blocks.h"
#include "results/html.h"
#include "results/report_parts.h"

namespace lra {

namespace {

constexpr double kNoNumber = std::numeric_limits<double>::infinity();  // sorts last

struct SweepPoint {
  int64_t length = 0;
  std::string scale;
  std::optional<double> value;  // of the scale where it is a number
  const Setting* setting = nullptr;
  const Cell* cell = nullptr;
};

struct Sweep {
  std::string title, source;
  std::vector<SweepPoint> points;
  std::map<int64_t, std::vector<const Setting*>> settings;  // of each length, in the order of their curves
};

// What the members of a sweep share: all settings but length and the data it cuts, all options but the scale.
std::string key_of(const Setting& setting, const Record& record, const std::string& variant) {
  Json identity = setting.identity;
  for (const char* field : {"max_length", "padded_length"}) identity["recipe"].erase(field);
  identity.erase("data");
  return dump_json(Json({setting.task, record.data.source, identity, variant}));
}

// "polynomial:power=3,causal=1+xsa" of a canonical spec, without its scale.
std::string without_scale(const std::string& spec) {
  const size_t plus = std::min(spec.find('+'), spec.size()), colon = std::min(spec.find(':'), plus);
  std::string options;
  for (size_t begin = colon + 1; begin < plus;) {
    const size_t end = std::min(spec.find(',', begin), plus);
    const std::string option = spec.substr(begin, end - begin);
    if (!option.starts_with("scale=")) options += (options.empty() ? ":" : ",") + option;
    begin = end + 1;
  }
  return spec.substr(0, colon) + options + spec.substr(plus);
}

// In what a setting differs from others of its task, length and data aside, which differ within a sweep too.
std::string other_fields(const Setting& setting) {
  std::vector<std::string> fields;
  for (const std::string& field : setting.differs) {
    const std::string_view name = std::string_view(field).substr(0, field.find(' '));
    if (name == "recipe.max_length" || name == "recipe.padded_length" || name.starts_with("data.")) continue;
    fields.push_back(name.starts_with("recipe.") ? field.substr(7) : field);
  }
  return fmt::format("{}", fmt::join(fields, ", "));
}

// Sweeps of one title get what tells them apart behind it.
void tell_apart(std::vector<Sweep>& sweeps) {
  const auto extend = [&](auto&& more) {
    std::map<std::string, int> titles;
    for (const Sweep& sweep : sweeps) ++titles[sweep.title];
    for (Sweep& sweep : sweeps) {
      if (titles[sweep.title] < 2) continue;
      const std::string text = more(sweep);
      if (!text.empty()) sweep.title += ", " + text;
    }
  };
  extend([](const Sweep& sweep) { return other_fields(*sweep.points.front().setting); });
  extend([](const Sweep& sweep) { return one_line("data " + sweep.source); });
  extend([](const Sweep& sweep) { return "setting " + sweep.points.front().setting->id; });
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
      const Json& options = record.attention.options;
      if (record.attention.name != "polynomial" || !options.contains("scale")) continue;
      const Json& scale = options.at("scale");
      const std::string text = one_line(scale.is_string() ? scale.get<std::string>() : dump_json(scale));
      const std::string variant = without_scale(cell.attention);
      Sweep& sweep = sweeps[key_of(setting, record, variant)];
      sweep.title = fmt::format("{}, recipe {}, {}", setting.task, setting.recipe, variant);
      sweep.source = record.data.source;
      const int64_t length = record.task.max_length;
      sweep.points.push_back({length, text, positive(text), &setting, &cell});
      auto& settings = sweep.settings[length];
      if (settings.empty() || settings.back() != &setting) settings.push_back(&setting);
    }
  }
  std::vector<Sweep> result;
  for (auto& [key, sweep] : sweeps) {
    std::map<const Setting*, std::set<double>> scales;
    for (const SweepPoint& point : sweep.points) {
      if (point.value) scales[point.setting].insert(*point.value);
    }
    if (std::none_of(scales.begin(), scales.end(), [](const auto& s) { return s.second.size() >= 2; })) continue;
    std::sort(sweep.points.begin(), sweep.points.end(), [](const SweepPoint& a, const SweepPoint& b) {
      return std::make_tuple(a.length, a.setting->id, a.value.value_or(kNoNumber), a.scale) <
             std::make_tuple(b.length, b.setting->id, b.value.value_or(kNoNumber), b.scale);
    });
    for (auto& [length, settings] : sweep.settings) {
      std::sort(settings.begin(), settings.end(), [](const Setting* a, const Setting* b) { return a->id < b->id; });
    }
    result.push_back(std::move(sweep));
  }
  tell_apart(result);
  return result;
}

// "500"; "500 b" where a length has several settings.
std::string curve_name(const Sweep& sweep, int64_t length, const Setting* setting) {
  const std::vector<const Setting*>& settings = sweep.settings.at(length);
  if (settings.size() < 2) return std::to_string(length);
  const auto place = std::find(settings.begin(), settings.end(), setting) - settings.begin();
  return place < 26 ? fmt::format("{} {}", length, static_cast<char>('a' + place))
                    : fmt::format("{} {}", length, place);
}

// Which data each curve has where a length has several.
std::string curves_apart(const Sweep& sweep) {
  std::string text;
  for (const auto& [length, settings] : sweep.settings) {
    if (settings.size() < 2) continue;
    text += fmt::format(" Length {} has {} settings, each with a curve of its own:", length, settings.size());
    for (const Setting* setting : settings) {
      text += fmt::format("{} {} is {} ({})", setting == settings.front() ? "" : ";",
                          curve_name(sweep, length, setting), setting->id, fmt::join(setting->differs, ", "));
    }
    text += '.';
  }
  return text;
}

std::string figure_of(ReportContext& context, const Sweep& sweep) {
  Plot plot{.x_label = "scale", .y_label = "test accuracy in %"};
  plot.log_x = 2;
  Table table{{"length", "scale", "runs", "test % ", "95 %"}, {}};
  bool words = false;
  for (const SweepPoint& point : sweep.points) {
    const Cell& cell = *point.cell;
    const std::string length = curve_name(sweep, point.length, point.setting);
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
      plot, sweep.title,
      fmt::format("A curve a sequence length, which stands at its end; bars are 95 % intervals, cut at 0 and 100.{}{}",
                  words ? " Scales that are no number stand in the table only." : "", curves_apart(sweep)),
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
