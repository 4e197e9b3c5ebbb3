#include "results/published.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace lra {

namespace {

std::string figure(const Json& value) { return value.is_null() ? "-" : fmt::format("{:.2f}", value.get<double>()); }

std::vector<std::string> row_of(const Json& row, const std::vector<std::string>& tasks) {
  std::vector<std::string> cells = {row.at("model").get<std::string>()};
  std::vector<double> known;
  for (const std::string& task : tasks) {
    cells.push_back(row.contains(task) ? figure(row.at(task)) : "-");
    if (cells.back() != "-") known.push_back(row.at(task).get<double>());
  }
  if (tasks.size() > 1) {
    const double sum = std::accumulate(known.begin(), known.end(), 0.0);
    cells.push_back(known.size() == tasks.size() ? figure(sum / static_cast<double>(known.size())) : "-");
  }
  return cells;
}

}  // namespace

Json published_rows(const std::vector<std::string>& tasks) {
  Json rows = Json::array();
  for (const auto& [name, text] : published_files()) {
    const Json file = parse_json(text, name);
    for (const Json& row : file.at("rows")) {
      const auto printed = [&](const std::string& task) { return row.contains(task) && !row.at(task).is_null(); };
      if (std::none_of(tasks.begin(), tasks.end(), printed)) continue;
      Json full = {{"source", file.at("source")}};
      full.update(row);
      rows.push_back(std::move(full));
    }
  }
  return rows;
}

Document published_document(const std::vector<std::string>& tasks) {
  // Where a figure is printed, how it was got, and who read it.
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Block> blocks;
  for (const Json& row : published_rows(tasks)) {
    const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
    Block& block = blocks[{text("source"), text("table"), text("setup"), text("verified")}];
    if (block.heading.empty()) {
      block.heading = fmt::format("Published: {}, {}", text("source"), text("table"));
      block.lines = {"Set-up: " + text("setup"), "Figures: " + text("verified")};
      block.table.header = {"model"};
      block.table.header.insert(block.table.header.end(), tasks.begin(), tasks.end());
      if (tasks.size() > 1) block.table.header.emplace_back("average");
    }
    block.table.rows.push_back(row_of(row, tasks));
    if (row.contains("note")) block.notes.push_back(text("model") + ": " + text("note"));
  }
  Document document;
  for (auto& [key, block] : blocks) document.push_back(std::move(block));
  if (document.empty()) return document;
  document.insert(document.begin(),
                  {"Published figures",
                   {"In percent, as printed; to be compared within one set-up. None is a run of this program. Averages "
                    "are recomputed over " +
                    fmt::format("{}.", fmt::join(tasks, ", "))},
                   {},
                   {}});
  return document;
}

}  // namespace lra
