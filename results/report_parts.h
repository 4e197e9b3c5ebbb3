// The parts of an HTML report and what they share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/comparison.h"
#include "results/document.h"
#include "results/run_logs.h"
#include "results/svg_plot.h"

namespace lra {

// A letter for each attention, the same in all plots of a report.
class Names {
 public:
  explicit Names(const Comparison& comparison);
  int order(const std::string& attention) const { return order_.at(attention); }
  std::string letter(const std::string& attention) const;  // "A" to "Z", "AA", …

 private:
  std::map<std::string, int> order_;
};

// The place of an attention among those of a setting that have runs: a plot of curves holds the first kStyles of them,
// so no two of its curves look alike.
int style_in(const Setting& setting, const std::string& attention);

class ReportContext {
 public:
  explicit ReportContext(const Comparison& what) : comparison(what), names(what) {}

  const RunLog& log(const RecordFile& run);  // read once
  void note_missing_logs();                  // of all that log() was asked for
  void note(std::string problem);            // named in the report and on stderr, once

  // A figure: heading, plot, caption, and a table to open; the table stands open where there is no plot.
  template <class AnyPlot>
  std::string figure(const AnyPlot& plot, const std::string& title, const std::string& caption, const Table& table) {
    const std::string svg = plotter_.draw(plot, "p" + std::to_string(++plots_), title, caption);
    if (!plotter_.problem().empty()) note(plotter_.problem());
    return around(svg, title, caption, table);
  }

  const Comparison& comparison;
  const Names names;
  std::vector<std::string> problems;
  uintmax_t map_bytes = 0;  // of pictures embedded so far

 private:
  static std::string around(const std::string& svg, const std::string& title, const std::string& caption,
                            const Table& table);

  Plotter plotter_;
  int plots_ = 0;
  std::map<const RecordFile*, RunLog> logs_;
};

// "listops, recipe quick", and what tells the setting from others of that name.
std::string title_of(const Comparison& comparison, const Setting& setting);

std::string shortened(const std::string& text, size_t longest);  // ends in "…" where cut

std::string summary_html(const Comparison& comparison);
std::string figures_html(ReportContext& context, const Setting& setting);
std::string sweep_html(ReportContext& context);
std::string maps_html(ReportContext& context, const Setting& setting);
std::string provenance_html(const Comparison& comparison);

}  // namespace lra
