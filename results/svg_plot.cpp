// Texts of records never reach gnuplot: a script holds placeholders, which are replaced in the SVG.
#include "results/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/util/check.h"
#include "lib/util/program.h"
#include "results/child_process.h"
#include "results/html.h"

namespace lra {

namespace {

constexpr int kWidth = 480, kHeight = 340;  // of the drawing; the page scales it
constexpr int kLeft = 66, kRight = 48, kTop = 32, kBottom = 54;
constexpr int kRowHeight = 40, kDotTop = 26;
constexpr int kSeconds = 20;        // a plot takes a tenth of one
constexpr double kLabelGap = 16.0;  // pixels between the lines of two labels

constexpr const char* kDashes[kStyles] = {"", "9,4", "3,4", "12,4,3,4", "5,3", "14,5,5,5", "2,2,8,2", "9,3,3,3,3,3"};
constexpr int kShapes[kStyles] = {7, 5, 9, 13, 6, 4, 11, 8};  // gnuplot's numbers

int style_of(int style) { return style % kStyles; }

// Colours that stand for CSS variables until the SVG is there.
std::string colour(int style) { return fmt::format("rgb '#{:02x}0000'", style_of(style) + 1); }
constexpr const char* kGrid = "rgb '#000001'";

std::string dash(int style) {
  const std::string pattern = kDashes[style_of(style)];
  return pattern.empty() ? "dt 1" : fmt::format("dt ({})", pattern);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, begin)) {
    result.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  text = result.append(text, begin);
}

// Removes every piece from `from` to the end of `to`.
void cut_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const size_t end = text.find(to, at);
    if (end == std::string::npos) return;
    text.erase(at, end + to.size() - at);
  }
}

void add_colour(std::string& svg, int r, int g, int b, const std::string& name) {
  replace_all(svg, fmt::format("rgb({:3}, {:3}, {:3})", r, g, b), name);
  replace_all(svg, fmt::format("rgb({},{},{})", r, g, b), name);
}

// What gnuplot writes for a file of its own, made a part of a page.
std::string embedded(std::string svg, int width, int height, const std::string& id, const std::string& description) {
  svg.erase(0, svg.find("<g id=\"gnuplot_canvas\""));
  cut_all(svg, "<filter", "</filter>");
  cut_all(svg, "<title>", "</title>");
  replace_all(svg, "gnuplot_canvas", id + "-canvas");
  for (const char* name : {"gpDot", "gpPt"}) replace_all(svg, name, id + '-' + name);  // in every plot alike
  replace_all(svg, " font-family=\"sans-serif\" ", " ");
  for (const char* quote : {"'", "\""}) {
    for (const char* attribute : {"stroke=", "color=", "fill="}) {
      const auto is = [&](const char* value) { return fmt::format("{}{}{}{}", attribute, quote, value, quote); };
      replace_all(svg, is("black"), is("currentColor"));
      replace_all(svg, is("white"), is("var(--page)"));
    }
  }
  for (int i = 0; i < kStyles; ++i) add_colour(svg, i + 1, 0, 0, fmt::format("var(--s{})", i));
  add_colour(svg, 0, 0, 1, "var(--grid)");
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\" "
      "xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n{}",
      width, height, html_escaped(description), svg);
}

// A range of values and where they lie between 0 and 1.
struct Axis {
  double low = 0.0, high = 1.0;
  bool log = false;

  double share(double value) const {
    return log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
  double value(double share) const { return log ? low * std::pow(high / low, share) : low + share * (high - low); }
  std::string range(char name) const { return fmt::format("set {}range [{:.10g}:{:.10g}]\n", name, low, high); }
};

// Room on both sides; a range of no width is widened.
Axis axis_of(std::vector<double> values, bool log, double room) {
  std::erase_if(values, [&](double value) { return !std::isfinite(value) || (log && value <= 0.0); });
  if (values.empty()) values = {1.0};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  Axis axis{*least, *most, log};
  if (log) {
    const double factor = std::max(std::pow(axis.high / axis.low, room), axis.high > axis.low ? 1.0 : 2.0);
    return {axis.low / factor, axis.high * factor, log};
  }
  const double margin =
      axis.high > axis.low ? room * (axis.high - axis.low) : std::max(0.05 * std::abs(axis.high), 0.5 * room);
  return {axis.low - margin, axis.high + margin, log};
}

std::string frame(int width, int height, int left, int right, int top, int bottom) {
  const auto share = [](int part, int whole) { return static_cast<double>(part) / whole; };
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset tmargin at screen {:.5f}\n"
      "set bmargin at screen {:.5f}\nset border 3\nset tics nomirror out scale 0.5\nset grid lc {} dt 1 lw 1\n"
      "set pointintervalbox 0\nunset key\nset errorbars 1.2\n",
      share(left, width), share(width - right, width), share(height - top, height), share(bottom, height), kGrid);
}

// About six ticks at round numbers, so that their figures do not run into each other.
std::string tics(const Axis& x) {
  const double rough = (x.high - x.low) / 6.0, unit = std::pow(10.0, std::floor(std::log10(rough)));
  const double times = rough / unit;
  return fmt::format("set xtics {:.10g}\n", unit * (times <= 1.0 ? 1 : times <= 2.0 ? 2 : times <= 5.0 ? 5 : 10));
}

// A text in single quotes, where gnuplot expands nothing.
std::string quoted(std::string text) {
  replace_all(text, "'", "''");
  return '\'' + text + '\'';
}

// Titles of axes are labels of our own: gnuplot drops its own where margins are fixed and tics point outward.
std::string x_title(const std::string& text, int width, int height, int left, int right) {
  return fmt::format("set label {} at screen {:.5f}, screen {:.5f} center\n", quoted(text),
                     0.5 * (left + width - right) / width, 12.0 / height);
}

std::string data_block(const std::string& name, const std::vector<Point>& points, const std::vector<Interval>& bars) {
  std::string text = fmt::format("${} << E\n", name);
  for (size_t i = 0; i < points.size(); ++i) {
    text += fmt::format("{:.10g} {:.10g}", points[i].x, points[i].y);
    if (!bars.empty()) text += fmt::format(" {:.10g} {:.10g}", bars[i].low, bars[i].high);
    text += '\n';
  }
  return text + "E\n";
}

// Moves labels apart from top to bottom so that none covers another; pixels from the top.
void spread(std::vector<std::pair<double, size_t>>& labels, double bottom) {
  std::sort(labels.begin(), labels.end());
  for (size_t i = 1; i < labels.size(); ++i) {
    labels[i].first = std::max(labels[i].first, labels[i - 1].first + kLabelGap);
  }
  double limit = bottom;
  for (size_t i = labels.size(); i-- > 0; limit = labels[i].first - kLabelGap) {
    labels[i].first = std::min(labels[i].first, limit);
  }
}

// Places of labels in a plot of known frame.
class Labels {
 public:
  Labels(const Axis& x, const Axis& y) : x_(x), y_(y) {}

  std::string at_ends(const std::vector<Series>& series) const {
    std::vector<std::pair<double, size_t>> places;
    for (size_t i = 0; i < series.size(); ++i) {
      if (!series[i].label.empty() && !series[i].points.empty())
        places.emplace_back((1.0 - y_.share(series[i].points.back().y)) * height(), i);
    }
    spread(places, height());
    std::string text;
    for (const auto& [place, i] : places) text += label(series[i], 1.0 + 8.0 / width(), 1.0 - place / height());
    return text;
  }

  // Beside the first point of each, on the side where nothing is yet.
  std::string beside_points(const std::vector<Series>& series) const {
    std::vector<Point> taken;
    for (const Series& s : series) {
      for (const Point& point : s.points) taken.push_back(pixel(point));
    }
    std::string text;
    for (const Series& s : series) {
      if (s.label.empty() || s.points.empty()) continue;
      const Point point = pixel(s.points.front());
      Point best{point.x + 9, point.y};
      double room = -1.0;
      for (const Point offset : {Point{9, 0}, {-20, 0}, {9, 12}, {9, -12}, {-20, 12}, {-20, -12}, {22, 0}, {9, 24}}) {
        const Point place{point.x + offset.x, point.y + offset.y};
        double nearest = 1e9;
        for (const Point& other : taken) {
          nearest = std::min(nearest, std::hypot(other.x - place.x - 5, other.y - place.y));
        }
        if (nearest < 13.0 ? nearest > room : room < 13.0) {
          best = place;
          room = nearest;
        }
      }
      taken.push_back({best.x + 5, best.y});
      text += label(s, best.x / width(), best.y / height());
    }
    return text;
  }

 private:
  static double width() { return kWidth - kLeft - kRight; }
  static double height() { return kHeight - kTop - kBottom; }
  Point pixel(const Point& p) const { return {x_.share(p.x) * width(), y_.share(p.y) * height()}; }
  static std::string label(const Series& s, double x, double y) {
    return fmt::format("set label {} at graph {:.5f}, graph {:.5f} left front tc {}\n", quoted(s.label), x, y,
                       colour(s.style));
  }

  Axis x_, y_;
};

std::string series_script(const Plot& plot) {
  std::string blocks, plots;
  const auto add = [&](const std::string& what) { plots += (plots.empty() ? "plot " : ", \\\n ") + what; };
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    for (size_t k = 0; k < s.thin.size(); ++k) {
      const std::string name = fmt::format("t{}_{}", i, k);
      blocks += data_block(name, s.thin[k], {});
      add(fmt::format("${} with lines lc {} lw 0.7 dt 1", name, colour(s.style)));
    }
    const std::string name = fmt::format("s{}", i);
    blocks += data_block(name, s.points, s.intervals);
    if (!s.intervals.empty()) {
      add(fmt::format("${} with yerrorbars lc {} lw 1.2 pt {} ps 0.9", name, colour(s.style),
                      kShapes[style_of(s.style)]));
    }
    if (plot.lines) {
      add(fmt::format("${} with linespoints lc {} lw 2 {} pt {} ps 0.8 pi {}", name, colour(s.style), dash(s.style),
                      kShapes[style_of(s.style)], std::max<size_t>(1, s.points.size() / 6)));
    } else if (s.intervals.empty()) {
      add(fmt::format("${} with points lc {} lw 1.2 pt {} ps 0.9", name, colour(s.style), kShapes[style_of(s.style)]));
    }
  }
  return blocks + plots + '\n';
}

}  // namespace

std::string Plotter::draw(const Plot& plot, const std::string& id, const std::string& title,
                          const std::string& caption) {
  std::vector<double> xs, ys;
  for (const Series& s : plot.series) {
    for (const Point& point : s.points) xs.push_back(point.x), ys.push_back(point.y);
    for (const Interval& bar : s.intervals) ys.push_back(bar.low), ys.push_back(bar.high);
    for (const auto& line : s.thin) {
      for (const Point& point : line) xs.push_back(point.x), ys.push_back(point.y);
    }
  }
  const Axis x = axis_of(xs, plot.log_x > 0, plot.lines && plot.log_x == 0 ? 0.0 : 0.08),
             y = axis_of(ys, plot.log_y, 0.06);
  std::string script = frame(kWidth, kHeight, kLeft, kRight, kTop, kBottom) + x.range('x') + y.range('y');
  script += x_title(plot.x_label, kWidth, kHeight, kLeft, kRight);
  script += fmt::format("set label {} at screen {:.5f}, screen {:.5f} left\n", quoted(plot.y_label), 8.0 / kWidth,
                        1.0 - 12.0 / kHeight);
  script += "set format '%g'\nset xtics font ',13' offset 0, 0.4\nset ytics font ',13'\n";
  script += plot.log_x > 0 ? fmt::format("set logscale x {}\n", plot.log_x) : tics(x);
  if (plot.log_y) script += "set logscale y 10\n";
  const Labels labels(x, y);
  script += (plot.lines ? labels.at_ends(plot.series) : labels.beside_points(plot.series)) + series_script(plot);
  return render(script, {kWidth, kHeight, id, title, caption}, {});
}

std::string Plotter::draw(const DotPlot& plot, const std::string& id, const std::string& title,
                          const std::string& caption) {
  const int rows = static_cast<int>(plot.rows.size()), left = 12, right = 18;
  const int height = kDotTop + rows * kRowHeight + kBottom;
  std::vector<double> values = {plot.level};
  for (const DotPlot::Row& row : plot.rows)
    values.insert(values.end(), {row.value, row.interval.low, row.interval.high});
  const Axis x = axis_of(values, false, 0.04);
  std::string script = frame(kWidth, height, left, right, kDotTop, kBottom) + x.range('x');
  script += fmt::format("set yrange [{}:0]\nset border 1\nunset ytics\nset grid xtics\n", rows + 0.15);
  script += x_title(plot.x_label, kWidth, height, left, right);
  script += "set format '%g'\nset xtics font ',13' offset 0, 0.4\n" + tics(x);
  if (std::isfinite(plot.level)) {
    script += fmt::format("set arrow from first {0:.10g}, graph 0 to first {0:.10g}, graph 1 nohead dt (4,4) lw 1\n",
                          plot.level);
    const double share = x.share(plot.level);
    script += fmt::format("set label {} at graph {:.5f}, graph 1 {} offset 0, 0.7 font ',12'\n",
                          quoted(plot.level_label), share,
                          share < 0.2   ? "left"
                          : share > 0.8 ? "right"
                                        : "center");
  }
  std::string blocks, plots;
  std::vector<std::string> texts;
  for (int i = 0; i < rows; ++i) {
    const DotPlot::Row& row = plot.rows[static_cast<size_t>(i)];
    script += fmt::format("set label '@{}@' at graph 0, first {:.3f} front\n", i, i + 0.34);
    texts.push_back(row.name);
    const std::string name = fmt::format("r{}", i);
    blocks += fmt::format("${} << E\n{:.10g} {} {:.10g} {:.10g}\nE\n", name, row.value, i + 0.74, row.interval.low,
                          row.interval.high);
    const std::string look = fmt::format("lc {} lw 1.6", colour(row.style));
    const std::string shape = fmt::format("pt {} ps 1", kShapes[style_of(row.style)]);
    const char* kind = std::isfinite(row.interval.low) ? "xerrorbars" : "points";
    plots += fmt::format("{}${} with {} {} {}", plots.empty() ? "plot " : ", ", name, kind, look, shape);
  }
  return render(script + blocks + plots + '\n', {kWidth, height, id, title, caption}, texts);
}

std::string Plotter::give_up(std::string problem) {
  given_up_ = true;
  problem_ = std::move(problem);
  return "";
}

std::string Plotter::render(const std::string& script, const Frame& frame, const std::vector<std::string>& texts) {
  if (given_up_) return "";
  const std::string head =
      fmt::format("set terminal svg size {},{} dynamic noenhanced font 'sans-serif,14' name '{}'\n", frame.width,
                  frame.height, frame.id);
  ChildResult result;
  try {
    result = run_child({"gnuplot", "-d"}, head + script, kSeconds);
  } catch (const InputError& error) {
    return give_up(fmt::format("no plots: {}", error.what()));
  }
  if (!result.found) return give_up("no plots: gnuplot is not installed (Debian: gnuplot-nox)");
  if (!result.refused.empty()) return give_up("no plots: gnuplot cannot be started: " + result.refused);
  if (result.out_of_time) {
    return give_up(fmt::format("plots are missing from \"{}\" on: gnuplot gave no answer within {} seconds",
                               frame.title, kSeconds));
  }
  if (result.exit_code != 0 || result.output.find("</svg>") == std::string::npos) {
    problem_ = "a plot is missing, gnuplot failed: " + one_line(shown(result.errors, 200));
    return "";
  }
  std::string svg =
      embedded(std::move(result.output), frame.width, frame.height, frame.id, frame.title + ". " + frame.caption);
  for (size_t i = 0; i < texts.size(); ++i)
    replace_all(svg, fmt::format(">@{}@<", i), ">" + html_escaped(texts[i]) + "<");
  return svg;
}

std::string Plotter::sample(int style) {
  constexpr const char* kPaths[kStyles] = {
      "M13 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M13.5 2.5h7v7h-7z", "M17 1.5l4.6 8h-9.2z",  "M17 1l5 5-5 5-5-5z",
      "M13 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M13.5 2.5h7v7h-7z", "M17 10.5l-4.6-8h9.2z", "M17 1.5l4.6 8h-9.2z"};
  const int i = style_of(style);
  const bool hollow = kShapes[i] == 6 || kShapes[i] == 4 || kShapes[i] == 8;
  return fmt::format(
      "<svg class=\"sample\" viewBox=\"0 0 34 12\" aria-hidden=\"true\"><path d=\"M0 6H34\" stroke=\"var(--s{0})\" "
      "stroke-width=\"2\" stroke-dasharray=\"{1}\" fill=\"none\"/><path d=\"{2}\" stroke=\"var(--s{0})\" "
      "fill=\"{3}\"/></svg>",
      i, kDashes[i], kPaths[i], hollow ? "var(--page)" : fmt::format("var(--s{})", i));
}

}  // namespace lra
