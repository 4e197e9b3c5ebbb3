// The figures of a setting: accuracy, courses of training, speed, norms. Each has its table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "lib/util/json.h"
#include "results/comparison_blocks.h"
#include "results/html.h"
#include "results/report_parts.h"

namespace lra {

namespace {

constexpr size_t kCurves = kStyles;    // in one plot: more can't be told apart
constexpr size_t kPointsOfCurve = 60;  // of more some are left out, or neighbours averaged
constexpr size_t kThinLines = 12;      // more hide the means
constexpr size_t kLayers = 4;
constexpr double kLogFrom = 30.0;  // ratio of values from which an axis is logarithmic

using Cells = std::vector<const Cell*>;

// The baseline, which comes first, and those of the highest mean accuracy.
Cells shown_cells(const Setting& setting) {
  Cells cells;
  for (const Cell& cell : setting.cells) {
    if (!cell.runs.empty() && cells.size() < kCurves) cells.push_back(&cell);
  }
  return cells;
}

std::string of_many(const Setting& setting, const Cells& shown) {
  const auto all =
      std::count_if(setting.cells.begin(), setting.cells.end(), [](const Cell& c) { return !c.runs.empty(); });
  if (static_cast<size_t>(all) == shown.size()) return "";
  return fmt::format(" {} of {} are drawn, by mean accuracy, which ranks nothing within the noise.", shown.size(), all);
}

// How a long course is made short.
enum class Thinning { kMeans, kDrop };

// Means of neighbours: what single batches are drawn as.
std::vector<Point> means_of(const std::vector<Point>& all) {
  const size_t n = all.size(), groups = std::min(n, kPointsOfCurve);
  std::vector<Point> points(groups);
  std::vector<double> members(groups);
  for (size_t i = 0; i < n; ++i) {
    const size_t group = i * groups / n;
    points[group].x += all[i].x;
    points[group].y += all[i].y;
    ++members[group];
  }
  for (size_t k = 0; k < groups; ++k) points[k] = {points[k].x / members[k], points[k].y / members[k]};
  return points;
}

// Evenly chosen ones, the first, the last and the highest among them: no point is anything but a measured one.
std::vector<Point> some_of(const std::vector<Point>& all) {
  std::set<size_t> kept = {static_cast<size_t>(
      std::max_element(all.begin(), all.end(), [](const Point& a, const Point& b) { return a.y < b.y; }) -
      all.begin())};
  const size_t steps = kPointsOfCurve - 2;  // with the last and the highest kPointsOfCurve at most
  for (size_t i = 0; i <= steps; ++i) kept.insert(i * (all.size() - 1) / steps);
  std::vector<Point> points;
  points.reserve(kept.size());
  for (const size_t i : kept) points.push_back(all[i]);
  return points;
}

std::vector<Point> points_of(const Course& course, double factor, Thinning thinning) {
  std::vector<Point> all;
  for (const auto& [step, value] : course) all.push_back({static_cast<double>(step), factor * value});
  if (all.size() <= kPointsOfCurve) return all;
  return thinning == Thinning::kMeans ? means_of(all) : some_of(all);
}

// The mean over runs at the steps that all of them have.
Course mean_course(const std::vector<Course>& courses) {
  Course mean;
  for (const auto& [step, first] : courses.front()) {
    double sum = 0.0;
    bool all = true;
    for (const Course& course : courses) {
      const auto found = course.find(step);
      all = all && found != course.end();
      if (all) sum += found->second;
    }
    if (all) mean[step] = sum / static_cast<double>(courses.size());
  }
  return mean;
}

struct Curves {
  std::vector<Series> series;
  bool shortened = false;  // a course had more points than are drawn
};

// What a figure shows of each run.
struct Followed {
  std::string what;
  double factor;
  Thinning thinning;
  std::function<const Course*(const RunLog&)> pick;
};

// Names the steps and runs that a mean leaves out.
void note_gaps(ReportContext& context, const Setting& setting, const Cell& cell, const std::string& what,
               const std::vector<Course>& courses, size_t drawn) {
  std::set<int64_t> steps;
  for (const Course& course : courses) {
    for (const auto& [step, value] : course) steps.insert(step);
  }
  const std::string name = fmt::format("{} (setting {}), {}, {}", setting.task, setting.id, cell.attention, what);
  if (drawn < steps.size()) {
    context.note(
        fmt::format("{}: its runs were logged at different steps; the mean is drawn at the {} of {} that all "
                    "have{}",
                    name, drawn, steps.size(), drawn == 0 ? ", so there is no curve" : ""));
  }
  if (courses.size() < cell.runs.size()) {
    context.note(fmt::format("{}: known of {} of {} runs only", name, courses.size(), cell.runs.size()));
  }
}

// A curve a cell: the mean over its runs, and each run in a thin line where there are several but not too many.
Curves curves(ReportContext& context, const Setting& setting, const Cells& cells, const Followed& followed) {
  Curves all;
  size_t runs = 0;
  for (const Cell* cell : cells) runs += cell->runs.size();
  for (const Cell* cell : cells) {
    std::vector<Course> courses;
    for (const RecordFile* run : cell->runs) {
      const Course* course = followed.pick(context.log(*run));
      if (course != nullptr && !course->empty()) courses.push_back(*course);
    }
    if (courses.empty()) continue;
    const Course mean = mean_course(courses);
    note_gaps(context, setting, *cell, followed.what, courses, mean.size());
    all.shortened = all.shortened || mean.size() > kPointsOfCurve;
    Series series{.style = style_in(setting, cell->attention),
                  .label = context.names.letter(cell->attention),
                  .points = points_of(mean, followed.factor, followed.thinning),
                  .intervals = {},
                  .thin = {}};
    for (size_t i = 0; courses.size() > 1 && runs <= kThinLines && i < courses.size(); ++i) {
      all.shortened = all.shortened || courses[i].size() > kPointsOfCurve;
      series.thin.push_back(points_of(courses[i], followed.factor, followed.thinning));
    }
    if (!series.points.empty()) all.series.push_back(std::move(series));
  }
  return all;
}

// What its lines are.
std::string caption_of(const Curves& curves, Thinning thinning) {
  const auto thin = [](const Series& s) { return !s.thin.empty(); };
  std::string text = std::any_of(curves.series.begin(), curves.series.end(), thin)
                         ? "Mean over runs; each run in a thin line."
                         : "Mean over runs.";
  if (curves.shortened) {
    text += thinning == Thinning::kMeans
                ? fmt::format(" Of more than {} points the means of neighbours.", kPointsOfCurve)
                : fmt::format(" Of more than {0} points {0} at most, the first, the last and the highest among them.",
                              kPointsOfCurve);
  }
  return text;
}

Table curve_table(const std::vector<Series>& series, const char* x, const char* format) {
  Table table{{x}, {}};
  std::set<double> xs;
  for (const Series& s : series) {
    table.header.push_back(s.label);
    for (const Point& point : s.points) xs.insert(point.x);
  }
  for (const double at : xs) {
    std::vector<std::string> row = {fmt::format("{:.0f}", at)};
    for (const Series& s : series) {
      const auto found = std::find_if(s.points.begin(), s.points.end(), [&](const Point& p) { return p.x == at; });
      row.push_back(found == s.points.end() ? "-" : figure(found->y, format));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// All above 0 and far apart.
bool wants_log(const std::vector<double>& values) {
  if (values.empty()) return false;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least > 0.0 && *most / *least > kLogFrom;
}

bool wants_log(const std::vector<Series>& series) {
  std::vector<double> values;
  for (const Series& s : series) {
    for (const Point& point : s.points) values.push_back(point.y);
  }
  return wants_log(values);
}

std::string accuracy_figure(ReportContext& context, const Setting& setting) {
  DotPlot plot{.x_label = "test accuracy in %",
               .rows = {},
               .level = 100.0 * setting.chance,
               .level_label = fmt::format("chance {:.1f} %", 100.0 * setting.chance)};
  Table table{{"attention", "runs", "test % ", "95 %"}, {}};
  for (const Cell& cell : setting.cells) {
    if (cell.runs.empty()) continue;
    plot.rows.push_back({fmt::format("{} {}: {}{}", context.names.letter(cell.attention), shortened(cell.attention, 38),
                                     percent(cell.test.mean), cell.chance_level ? " (c)" : ""),
                         style_in(setting, cell.attention),
                         100.0 * cell.test.mean,
                         {std::max(0.0, 100.0 * cell.interval.low), std::min(100.0, 100.0 * cell.interval.high)}});
    if (std::isnan(cell.interval.low)) plot.rows.back().interval = {};
    table.rows.push_back({cell.attention, std::to_string(cell.runs.size()),
                          percent(cell.test.mean) + (cell.chance_level ? "c" : " "), interval_text(cell.interval)});
  }
  if (plot.rows.empty()) return "";
  return context.figure(
      plot, "Test accuracy",
      "Mean over runs and 95 % interval, cut at 0 and 100: Student's t over seeds, with one run "
      "Wilson's of its test rows. Dashed: always answering the commonest class. c: not shown to be above that.",
      table);
}

std::string training_figures(ReportContext& context, const Setting& setting, const Cells& cells) {
  const std::string more = of_many(setting, cells);
  Plot plot{.x_label = "step", .y_label = "validation accuracy in %"};
  Curves drawn =
      curves(context, setting, cells,
             {"validation accuracy", 100.0, Thinning::kDrop, [](const RunLog& log) { return &log.validation; }});
  std::string html;
  plot.series = drawn.series;
  if (!plot.series.empty()) {
    html += context.figure(plot, "Validation accuracy over training", caption_of(drawn, Thinning::kDrop) + more,
                           curve_table(plot.series, "step", "{:.2f}"));
  }
  drawn = curves(context, setting, cells,
                 {"training loss", 1.0, Thinning::kMeans, [](const RunLog& log) { return &log.loss; }});
  plot.series = drawn.series;
  plot.y_label = "training loss";
  plot.log_y = wants_log(plot.series);
  if (!plot.series.empty()) {
    html += context.figure(plot, "Training loss",
                           "Loss of single batches as logged. " + caption_of(drawn, Thinning::kMeans) + more,
                           curve_table(plot.series, "step", "{:.4f}"));
  }
  return html;
}

std::string speed_figure(ReportContext& context, const Setting& setting) {
  Plot plot{.x_label = "training time in ms a sample", .y_label = "test accuracy in %", .lines = false};
  Table table{{"attention", "runs", "ms/sample", "test %"}, {}};
  std::vector<std::string> elsewhere;
  for (const Cell& cell : setting.cells) {
    if (cell.runs.empty()) continue;
    const auto machines = machines_of(cell);
    const auto found = machines.find(setting.machine);
    if (found == machines.end()) {
      elsewhere.push_back(cell.attention);
      continue;
    }
    std::vector<double> times, accuracies;
    for (const RecordFile* run : found->second) {
      times.push_back(1e3 / run->record.speed.samples_per_second);
      accuracies.push_back(100.0 * run->record.best->test_accuracy);
    }
    const double x = summarise(times).mean, y = summarise(accuracies).mean;
    plot.series.push_back({.style = style_in(setting, cell.attention),
                           .label = context.names.letter(cell.attention),
                           .points = {{x, y}},
                           .intervals = {},
                           .thin = {}});
    table.rows.push_back({cell.attention, std::to_string(times.size()), figure(x, "{:.3g}"), figure(y, "{:.2f}")});
  }
  if (plot.series.size() < 2) return "";
  const EnvironmentRecord e = [&] {
    for (const Cell& cell : setting.cells) {
      const auto machines = machines_of(cell);
      if (const auto found = machines.find(setting.machine); found != machines.end())
        return found->second.front()->record.environment;
    }
    return EnvironmentRecord{};
  }();
  std::string caption =
      fmt::format("Means over runs on one machine and build: {}, threads: {}, commit {}{}.", e.cpu, e.threads, e.commit,
                  e.dirty ? " with uncommitted changes, which may not be the same" : "");
  if (!elsewhere.empty()) caption += fmt::format(" No run there, so not shown: {}.", fmt::join(elsewhere, ", "));
  return context.figure(plot, "Speed against accuracy", caption, table);
}

std::string norm_figures(ReportContext& context, const Setting& setting, const Cells& cells) {
  std::string html;
  for (const NormKind& kind : kNormKinds) {
    std::set<int64_t> layers;
    for (const Cell* cell : cells) {
      for (const RecordFile* run : cell->runs) {
        for (const auto& [key, course] : context.log(*run).norms) {
          if (key.first == kind.key) layers.insert(key.second);
        }
      }
    }
    size_t drawn = 0;
    for (const int64_t layer : layers) {
      if (++drawn > kLayers) {
        context.note(
            fmt::format("{}: norms of {} layers, the first {} are drawn", setting.task, layers.size(), kLayers));
        break;
      }
      Plot plot{.x_label = "step", .y_label = kind.title};
      const auto pick = [&](const RunLog& log) -> const Course* {
        const auto found = log.norms.find({kind.key, layer});
        return found == log.norms.end() ? nullptr : &found->second;
      };
      const Curves drawn = curves(context, setting, cells, {kind.key, 1.0, Thinning::kDrop, pick});
      plot.series = drawn.series;
      plot.log_y = wants_log(plot.series);
      if (plot.series.empty()) continue;
      html += context.figure(
          plot, fmt::format("{}, layer {}", kind.title, layer),
          fmt::format("{} of the records, over heads and validation rows. {}{}{}", kind.key,
                      caption_of(drawn, Thinning::kDrop), plot.log_y ? " Logarithmic." : "", of_many(setting, cells)),
          curve_table(plot.series, "step", "{:.4g}"));
    }
  }
  return html;
}

std::string correlation_figure(ReportContext& context, const Setting& setting, const NormCorrelation& norm) {
  Plot plot{.x_label = norm.norm + " after the last step", .y_label = "test accuracy in %", .lines = false};
  Table table{{"attention", "seed", norm.norm, "test %"}, {}};
  std::vector<double> norms;
  for (const Cell& cell : setting.cells) {
    Series series{.style = style_in(setting, cell.attention), .label = context.names.letter(cell.attention)};
    for (const RecordFile* run : cell.runs) {
      const double value = last_norm(run->record, norm.norm.c_str());
      if (!std::isfinite(value)) continue;
      series.points.push_back({value, 100.0 * run->record.best->test_accuracy});
      norms.push_back(value);
      table.rows.push_back(
          {cell.attention, seed_text(run->record), figure(value, "{:.4g}"), percent(run->record.best->test_accuracy)});
    }
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  plot.log_x = wants_log(norms) ? 10 : 0;
  const Correlation& c = norm.correlation;
  return context.figure(plot, fmt::format("{} against accuracy", norm.norm),
                        fmt::format("A point a run. Spearman's correlation {}, n = {}. Seeds of one attention are not "
                                    "independent of each other.",
                                    figure(c.rho, "{:+.2f}"), c.n),
                        table);
}

std::string legend_html(const ReportContext& context, const Setting& setting) {
  std::map<int, std::string> names;  // by letter
  for (const Cell& cell : setting.cells) {
    if (!cell.runs.empty()) names[context.names.order(cell.attention)] = cell.attention;
  }
  std::string items;
  for (const auto& [order, attention] : names) {
    items +=
        fmt::format("<li><strong>{}</strong>{}<span class=\"name\">{}</span></li>\n", context.names.letter(attention),
                    Plotter::sample(style_in(setting, attention)), html_escaped(attention));
  }
  return "<ul class=\"legend\" aria-label=\"Names in the plots\">\n" + items + "</ul>\n";
}

}  // namespace

std::string figures_html(ReportContext& context, const Setting& setting) {
  const Cells cells = shown_cells(setting);
  if (cells.empty()) return "";
  std::string html = accuracy_figure(context, setting);  // one after the other: a sum may be worked out in any order
  html += training_figures(context, setting, cells);
  html += speed_figure(context, setting);
  html += norm_figures(context, setting, cells);
  for (const NormCorrelation& norm : setting.norms) html += correlation_figure(context, setting, norm);
  return "<h3>Figures</h3>\n" + legend_html(context, setting) + "<div class=\"figures\">\n" + html + "</div>\n";
}

}  // namespace lra
