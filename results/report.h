// The HTML report of a comparison: one file with summary, tables, plots, maps and the provenance of each run.
#pragma once

#include <string>
#include <vector>

#include "results/comparison.h"
#include "results/document.h"

namespace lra {

struct ReportOptions {
  bool allow_mixed = false;
  Document published;  // may be empty
};

struct Report {
  std::string html;
  std::vector<std::string> problems;  // one line each, which the report holds too
};

Report html_report(const Comparison& comparison, const ReportOptions& options);

}  // namespace lra
