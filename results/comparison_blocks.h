// The parts that text, Markdown, LaTeX and HTML put a comparison together from.
#pragma once

#include <string>
#include <vector>

#include "results/comparison.h"
#include "results/document.h"

namespace lra {

std::string percent(double share, const char* format = "{:.2f}");  // "37.25", "-" where undefined
std::string figure(double value, const char* format);
std::string interval_text(const Interval& accuracy);               // "[34.9, 36.7]", percent, cut at 0 and 100
std::string difference_interval_text(const Interval& difference);  // not cut
// "5000 steps, at most 2000 tokens, float32": what a recipe's name does not say.
std::string extent_of(const Setting& setting);

// Attention by task for the settings of one recipe name, precision and selection. Tasks of several settings have no
// column.
struct Overview {
  std::string title;  // "recipe quick", and precision and selection where there are others of that name
  std::vector<const Setting*> columns;
  std::vector<std::string> attentions;  // the baseline first, then as they come
  std::vector<std::string> notes;       // the extent of each column; tasks without one
};
std::vector<Overview> overviews(const Comparison& comparison);              // of two columns at least
const Cell* cell_of(const Setting& setting, const std::string& attention);  // with a completed run, else null

// The mean over all columns, or the tasks that it lacks.
struct Average {
  double mean = kUndefined;
  bool chance_level = false;  // one of its parts is
  std::vector<std::string> missing;
};
Average average_of(const Overview& overview, const std::string& attention);

Block overview_block(const Overview& overview);
Block accuracy_block(const Setting& setting, const std::string& baseline);
Block rows_block(const Setting& setting, const std::string& baseline);  // McNemar; no table: no test
Block cost_block(const Setting& setting);
// The settings of each task that has several, row by row with what differs: neither averaged nor tested.
Document mixed_document(const Comparison& comparison);
Block legend(const std::string& baseline);

}  // namespace lra
