// A comparison as tables for readers, as LaTeX, as CSV with a row a cell, and as JSON.
#pragma once

#include <string>

#include "lib/util/json.h"
#include "results/comparison.h"
#include "results/document.h"

namespace lra {

// allow_mixed: the settings of a task side by side too.
Document comparison_document(const Comparison& comparison, bool allow_mixed);
// Tables of the package booktabs: tasks as columns where a recipe has several, then each setting.
std::string comparison_latex(const Comparison& comparison, bool allow_mixed);
std::string comparison_csv(const Comparison& comparison);
Json comparison_json(const Comparison& comparison);  // schema "lra-comparison/1"

}  // namespace lra
