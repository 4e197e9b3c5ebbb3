// The tables of a comparison: an overview over tasks, then accuracy, rows and cost of each setting.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lib/util/program.h"
#include "results/comparison_blocks.h"
#include "results/comparison_output.h"

namespace lra {

namespace {

constexpr const char* kNotIndependent =
    "Runs of one attention are not independent of each other: seeds make n larger than what such a correlation rests "
    "on.";

std::string mark(bool chance_level) { return chance_level ? "c" : " "; }

std::vector<std::string> accuracy_row(const Cell& cell, const std::string& baseline) {
  std::vector<std::string> row = {cell.attention,
                                  std::to_string(cell.runs.size()),
                                  percent(cell.test.mean) + mark(cell.chance_level),
                                  interval_text(cell.interval),
                                  percent(cell.last.mean),
                                  "-",
                                  "-",
                                  "-"};
  if (cell.attention == baseline) row.back() = "baseline";
  if (cell.versus) {
    row[5] = percent(cell.versus->difference.difference, "{:+.2f}");
    row[6] = figure(cell.versus->p_holm, "{:.2g}");
    row[7] = cell.versus->verdict == Verdict::kUntested ? cell.versus->reason : verdict_name(cell.versus->verdict);
  }
  return row;
}

// What the settings of an overview share.
struct Group {
  std::string recipe, precision, selection;
  bool operator==(const Group&) const = default;
};

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "unknown";
  return found->is_string() ? one_line(found->get<std::string>()) : one_line(dump_json(*found));
}

Group group_of(const Setting& setting) {
  return {setting.recipe, text_at(setting.identity, "precision"),
          text_at(setting.identity.at("protocol"), "selection")};
}

std::vector<Group> groups_of(const Comparison& comparison) {
  std::vector<Group> groups;
  for (const Setting& setting : comparison.settings) {
    if (std::find(groups.begin(), groups.end(), group_of(setting)) == groups.end()) groups.push_back(group_of(setting));
  }
  return groups;
}

// Settings of one group or of all, those of one task together.
std::vector<std::vector<const Setting*>> by_task(const Comparison& comparison, const Group* group) {
  std::vector<std::vector<const Setting*>> tasks;  // settings are sorted by task
  for (const Setting& setting : comparison.settings) {
    if (group != nullptr && group_of(setting) != *group) continue;
    if (tasks.empty() || tasks.back().front()->task != setting.task) tasks.emplace_back();
    tasks.back().push_back(&setting);
  }
  return tasks;
}

Overview overview_of(const Comparison& comparison, const Group& group) {
  Overview overview{.title = "recipe " + group.recipe, .columns = {}, .attentions = {}, .notes = {}};
  const std::vector<Group> groups = groups_of(comparison);
  const auto other = [&](auto member) {
    return std::any_of(groups.begin(), groups.end(),
                       [&](const Group& g) { return g.recipe == group.recipe && g.*member != group.*member; });
  };
  if (other(&Group::precision)) overview.title += ", " + group.precision;
  if (other(&Group::selection)) overview.title += ", " + group.selection;
  std::vector<std::string> apart;
  for (const auto& settings : by_task(comparison, &group)) {
    const std::string& task = settings.front()->task;
    if (settings.size() > 1) {
      apart.push_back(fmt::format("{} has {} settings and stands only below.", task, settings.size()));
      continue;
    }
    overview.columns.push_back(settings.front());
    overview.notes.push_back(fmt::format("{}: {}", task, extent_of(*settings.front())));
    for (const Cell& cell : settings.front()->cells) {
      auto& names = overview.attentions;
      if (std::find(names.begin(), names.end(), cell.attention) != names.end()) continue;
      names.insert(cell.attention == comparison.baseline ? names.begin() : names.end(), cell.attention);
    }
  }
  overview.notes.insert(overview.notes.end(), apart.begin(), apart.end());
  return overview;
}

// The means of one machine; of a cell that ran elsewhere, or there too, it is said.
void add_time_notes(const Cell& cell, std::vector<std::string>& notes) {
  if (!cell.ms_withheld.empty()) {
    notes.push_back(fmt::format("{}: no ms/sample, all of the column are of one machine and build; here differ {}",
                                cell.attention, cell.ms_withheld));
  } else if (cell.timed_runs > 0 && cell.timed_runs < cell.runs.size()) {
    notes.push_back(fmt::format("{}: ms/sample over {} of {} runs, those on the machine and build of the column",
                                cell.attention, cell.timed_runs, cell.runs.size()));
  }
  if (cell.time_withheld == "uncommitted changes") {
    notes.push_back(
        fmt::format("{}: no relative time, built with uncommitted changes, which may not be the same", cell.attention));
  } else if (!cell.time_withheld.empty()) {
    notes.push_back(fmt::format("{}: no relative time, differs from the baseline's runs in {}", cell.attention,
                                cell.time_withheld));
  }
}

}  // namespace

std::string percent(double share, const char* format) {
  return std::isfinite(share) ? fmt::format(fmt::runtime(format), 100.0 * share) : "-";
}

std::string figure(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

std::string interval_text(const Interval& accuracy) {
  return difference_interval_text({std::clamp(accuracy.low, 0.0, 1.0), std::clamp(accuracy.high, 0.0, 1.0)});
}

std::string difference_interval_text(const Interval& difference) {
  if (!std::isfinite(difference.low)) return "-";
  return '[' + percent(difference.low, "{:.1f}") + ", " + percent(difference.high, "{:.1f}") + ']';
}

std::string extent_of(const Setting& setting) {
  const Json& recipe = setting.identity.at("recipe");
  return fmt::format("{} steps, at most {} tokens, {}{}", text_at(recipe, "steps"), text_at(recipe, "max_length"),
                     text_at(setting.identity, "precision"),
                     selected_on_test(recipe) ? fmt::format(", {}", kSelectedOnTest) : "");
}

const Cell* cell_of(const Setting& setting, const std::string& attention) {
  for (const Cell& cell : setting.cells) {
    if (cell.attention == attention && !cell.runs.empty()) return &cell;
  }
  return nullptr;
}

std::vector<Overview> overviews(const Comparison& comparison) {
  std::vector<Overview> result;
  for (const Group& group : groups_of(comparison)) {
    Overview overview = overview_of(comparison, group);
    if (overview.columns.size() >= 2) result.push_back(std::move(overview));
  }
  return result;
}

Average average_of(const Overview& overview, const std::string& attention) {
  Average average;
  std::vector<double> means;
  for (const Setting* setting : overview.columns) {
    const Cell* cell = cell_of(*setting, attention);
    if (cell == nullptr) {
      average.missing.push_back(setting->task);
    } else {
      means.push_back(cell->test.mean);
      average.chance_level = average.chance_level || cell->chance_level;
    }
  }
  if (average.missing.empty()) average.mean = summarise(means).mean;
  return average;
}

Block overview_block(const Overview& overview) {
  Block block;
  block.heading = fmt::format("Test accuracy in %, {}", overview.title);
  block.table.header = {"attention"};
  std::vector<std::string> names;
  for (const Setting* setting : overview.columns) names.push_back(setting->task);
  for (const std::string& name : names) block.table.header.push_back(name + ' ');
  block.table.header.emplace_back("average ");
  block.notes = overview.notes;
  block.notes.push_back(
      fmt::format("average: over {}; withheld where one of them is missing.", fmt::join(names, ", ")));
  for (const std::string& attention : overview.attentions) {
    std::vector<std::string> row = {attention};
    for (const Setting* setting : overview.columns) {
      const Cell* cell = cell_of(*setting, attention);
      row.push_back(cell == nullptr ? "- " : percent(cell->test.mean) + mark(cell->chance_level));
    }
    const Average average = average_of(overview, attention);
    row.push_back(percent(average.mean) + mark(average.missing.empty() && average.chance_level));
    block.table.rows.push_back(std::move(row));
    if (!average.missing.empty()) {
      block.notes.push_back(
          fmt::format("{}: no average, no completed run on {}", attention, fmt::join(average.missing, ", ")));
    }
  }
  return block;
}

Block accuracy_block(const Setting& setting, const std::string& baseline) {
  Block block;
  block.heading = fmt::format("{}, recipe {} (setting {})", setting.task, setting.recipe, setting.id);
  block.lines.push_back(extent_of(setting) +
                        (setting.test_examples == 0
                             ? "; no data was read"
                             : fmt::format("; {} test rows, the commonest class is {} % of them", setting.test_examples,
                                           percent(setting.chance, "{:.1f}"))));
  if (!setting.differs.empty()) {
    block.lines.push_back(fmt::format("Not comparable with the other settings of {}; here: {}", setting.task,
                                      fmt::join(setting.differs, ", ")));
  }
  block.table.header = {"attention", "runs", "test % ", "95 %", "last %", "diff.", "p", "verdict"};
  for (const Cell& cell : setting.cells) {
    block.table.rows.push_back(accuracy_row(cell, baseline));
    if (!cell.without.empty()) {
      block.notes.push_back(fmt::format("{}: in no mean: {}", cell.attention, fmt::join(cell.without, ", ")));
    }
    if (!cell.chance_level && !cell.at_chance.empty()) {
      block.notes.push_back(fmt::format("{}: not shown to be above chance by its own test rows: {}", cell.attention,
                                        fmt::join(cell.at_chance, ", ")));
    }
  }
  if (cell_of(setting, baseline) == nullptr) {
    block.notes.push_back(fmt::format("No completed run of {} in this setting: nothing to compare with.", baseline));
  }
  for (const NormCorrelation& norm : setting.norms) {
    const Correlation& c = norm.correlation;
    block.notes.push_back(fmt::format("{} after the last step against test accuracy: Spearman {}, n = {} runs",
                                      norm.norm, figure(c.rho, "{:+.2f}"), c.n));
  }
  if (!setting.norms.empty()) block.notes.emplace_back(kNotIndependent);
  return block;
}

Block rows_block(const Setting& setting, const std::string& baseline) {
  Block block;
  block.table.header = {"McNemar, by seed", "seeds", "better", "worse", "smallest p"};
  for (const Cell& cell : setting.cells) {
    if (cell.row_tests.empty()) continue;
    int64_t better = 0, worse = 0;
    double least = 1.0;
    for (const RowTest& test : cell.row_tests) {
      least = std::min(least, test.p_holm);
      if (test.p_holm >= 1.0 - kConfidence) continue;
      ++(test.only_here > test.only_baseline ? better : worse);
    }
    block.table.rows.push_back({cell.attention, std::to_string(cell.row_tests.size()), std::to_string(better),
                                std::to_string(worse), figure(least, "{:.2g}")});
  }
  if (block.table.rows.empty()) block.table.header.clear();
  block.notes = setting.row_notes;
  return block;
}

Block cost_block(const Setting& setting) {
  Block block;
  block.table.header = {"attention", "ms/sample", "relative", "memory MB", "GFLOP/sample", "parameters"};
  const auto with = [&](double Cell::*norm) {
    return std::any_of(setting.cells.begin(), setting.cells.end(),
                       [&](const Cell& cell) { return std::isfinite(cell.*norm); });
  };
  const bool norms = with(&Cell::norm_per_sqrt_n) || with(&Cell::max_score);
  if (norms) block.table.header.insert(block.table.header.end(), {"P/sqrt(n)", "max S"});
  for (const Cell& cell : setting.cells) {
    if (cell.runs.empty()) continue;
    block.table.rows.push_back({cell.attention, figure(cell.ms_per_sample, "{:.3g}"),
                                figure(cell.relative_time, "{:.2f}x"),
                                figure(static_cast<double>(cell.peak_rss_bytes) * 1e-6, "{:.0f}"),
                                figure(cell.flops_per_sample * 1e-9, "{:.3g}"),
                                fmt::format("{}{}", cell.parameters, cell.parameters_differ ? "!" : " ")});
    if (norms) {
      block.table.rows.back().push_back(figure(cell.norm_per_sqrt_n, "{:.3g}"));
      block.table.rows.back().push_back(figure(cell.max_score, "{:.3g}"));
    }
    add_time_notes(cell, block.notes);
  }
  if (block.table.rows.empty()) block.table.header.clear();
  return block;
}

Document mixed_document(const Comparison& comparison) {
  Document document;
  for (const auto& settings : by_task(comparison, nullptr)) {
    if (settings.size() < 2) continue;
    Block block;
    block.heading = fmt::format("{}: different settings side by side", settings.front()->task);
    block.lines.emplace_back("No row here may be compared with a row of another setting: neither averaged nor tested.");
    block.table.header = {"attention", "setting", "runs", "test % ", "95 %"};
    for (const Setting* setting : settings) {
      block.notes.push_back(
          fmt::format("{}: recipe {}; {}{}", setting->id, setting->recipe, fmt::join(setting->differs, ", "),
                      selected_on_test(setting->identity.at("recipe")) ? fmt::format("; {}", kSelectedOnTest) : ""));
      for (const Cell& cell : setting->cells) {
        block.table.rows.push_back({cell.attention, setting->id, std::to_string(cell.runs.size()),
                                    percent(cell.test.mean) + mark(cell.chance_level), interval_text(cell.interval)});
      }
    }
    std::stable_sort(block.table.rows.begin(), block.table.rows.end(), [&](const auto& a, const auto& b) {
      return std::make_pair(a[0] != comparison.baseline, a[0]) < std::make_pair(b[0] != comparison.baseline, b[0]);
    });
    document.push_back(std::move(block));
  }
  return document;
}

Block legend(const std::string& baseline) {
  Block block;
  block.heading = "Legend";
  block.lines = {
      "test %: mean over runs of the test accuracy at the best validation accuracy; last %: after the last step.",
      "95 %: interval by Student's t over seeds; with one run Wilson's, of its test rows alone; cut at 0 and 100.",
      fmt::format(
          "c: not shown to be above chance, the share of the commonest class: by Wilson's {} % intervals of the "
          "test rows none of the runs by its own, or all together not; of an average: one of its parts.",
          std::lround(100.0 * kConfidence)),
      fmt::format("diff.: to {}, in points; over the shared seeds where there are two, else of the means.", baseline),
      "p: paired t over shared seeds, else Welch's; Holm's correction over all comparisons of the task.",
      "verdict: within noise where p is 0.05 or more; one seed, no spread: no test can be made.",
      fmt::format("McNemar: the two models of a seed on the same test rows, exact; better and worse count the seeds "
                  "where p is below 0.05 after Holm's correction over all such tests of the task. It speaks of these "
                  "trained models; of another seed only the test over seeds does. Baseline: {}.",
                  baseline),
      "Rows are sorted by test %, which ranks nothing within the noise.",
      fmt::format("ms/sample: of runs on one machine and build only; relative: training time to {} on equal machine, "
                  "threads and commit, since another commit may be faster; memory: the largest of the runs; !: "
                  "parameters differ by over 10 %.",
                  baseline),
      std::string(
          "P/sqrt(n): Frobenius norm of the attention matrix over the root of the length, mean over layers, heads "
          "and runs; max S: the largest absolute score; both after the last step, of runs with --norms.")};
  return block;
}

Document comparison_document(const Comparison& comparison, bool allow_mixed) {
  Document document;
  for (const Overview& overview : overviews(comparison)) document.push_back(overview_block(overview));
  if (allow_mixed) {
    for (Block& block : mixed_document(comparison)) document.push_back(std::move(block));
  }
  for (const Setting& setting : comparison.settings) {
    document.push_back(accuracy_block(setting, comparison.baseline));
    for (const Block& block : {rows_block(setting, comparison.baseline), cost_block(setting)}) {
      if (!block.table.header.empty() || !block.notes.empty()) document.push_back(block);
    }
  }
  document.push_back(legend(comparison.baseline));
  if (!comparison.left_out.empty()) document.push_back({"Left out", comparison.left_out, {}, {}});
  return document;
}

}  // namespace lra
