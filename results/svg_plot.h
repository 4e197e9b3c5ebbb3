// Plots as SVG for use inside an HTML page, drawn by gnuplot. Colours are CSS variables (--s0 to --s7, --grid, --page)
// and the page's text colour, so that they follow its scheme; series also differ in dashes, point shapes and labels.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "results/statistics.h"

namespace lra {

inline constexpr int kStyles = 8;

struct Point {
  double x = 0.0, y = 0.0;
};

// Drawn as a line with a label at its right end, or as points with a label beside the first.
struct Series {
  int style = 0;      // any number; colours, dashes and shapes repeat after kStyles
  std::string label;  // short; empty: none
  std::vector<Point> points = {};
  std::vector<Interval> intervals = {};       // of y, one a point, or none
  std::vector<std::vector<Point>> thin = {};  // companions in thin lines of the same colour
};

struct Plot {
  std::string x_label, y_label;
  std::vector<Series> series = {};
  bool lines = true;
  int log_x = 0;       // base of a logarithmic axis, 0: linear
  bool log_y = false;  // base 10
};

// Values with horizontal intervals, one below the other, each under its name.
struct DotPlot {
  struct Row {
    std::string name;
    int style = 0;
    double value = 0.0;
    Interval interval;
  };
  std::string x_label;
  std::vector<Row> rows;
  double level = kUndefined;  // a dashed line, such as chance
  std::string level_label = {};
};

class Plotter {
 public:
  // The SVG, whose ids begin with `id`; title and caption are what a screen reader says. Empty where gnuplot is missing
  // or fails, which `problem` then tells. A gnuplot that hangs is not asked again.
  std::string draw(const Plot& plot, const std::string& id, const std::string& title, const std::string& caption);
  std::string draw(const DotPlot& plot, const std::string& id, const std::string& title, const std::string& caption);
  // A short piece of a series' line with its point, for a legend; needs no gnuplot.
  static std::string sample(int style);

  const std::string& problem() const { return problem_; }

 private:
  struct Frame {
    int width, height;
    std::string id, title, caption;
  };
  std::string render(const std::string& script, const Frame& frame, const std::vector<std::string>& texts);
  std::string give_up(std::string problem);

  bool given_up_ = false;
  std::string problem_;
};

}  // namespace lra
