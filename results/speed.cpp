// Training times, which mean something on one machine and build alone.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "results/comparison.h"

namespace lra {

namespace {

constexpr const char* kChanges = "uncommitted changes";

double ms_per_sample(const std::vector<const RecordFile*>& runs) {
  std::vector<double> times;
  times.reserve(runs.size());
  for (const RecordFile* run : runs) times.push_back(1e3 / run->record.speed.samples_per_second);
  return summarise(times).mean;
}

std::vector<std::string> different_fields(const Json& own, const Json& other) {
  std::vector<std::string> fields;
  for (const auto& [key, value] : own.items()) {
    if (value != other.at(key)) fields.push_back(key);
  }
  return fields;
}

// In what the machines and builds of their first runs differ. Two states with changes may be different ones.
std::string machines_differ(const Cell& cell, const Cell& baseline) {
  const EnvironmentRecord& own = cell.runs.front()->record.environment;
  const EnvironmentRecord& other = baseline.runs.front()->record.environment;
  std::vector<std::string> fields = different_fields(machine_of(own), machine_of(other));
  if (own.dirty && other.dirty) fields.emplace_back(kChanges);
  return fmt::format("{}", fmt::join(fields, ", "));
}

// Mean of the ratios over machines on which both have runs.
double relative_time(const Cell& cell, const Cell& baseline) {
  const auto own = machines_of(cell), other = machines_of(baseline);
  std::vector<double> ratios;
  for (const auto& [machine, runs] : own) {
    const auto found = other.find(machine);
    if (found == other.end() || (&cell != &baseline && runs.front()->record.environment.dirty)) continue;
    const double ratio = ms_per_sample(runs) / ms_per_sample(found->second);
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return summarise(ratios).mean;
}

// The machine on which the most cells have runs, among them the baseline where it can be. Empty without any.
std::string common_machine(const Setting& setting, const Cell* baseline) {
  std::map<std::string, std::pair<int, bool>> cells_on;  // how many, and whether the baseline is one
  for (const Cell& cell : setting.cells) {
    for (const auto& [machine, runs] : machines_of(cell)) {
      ++cells_on[machine].first;
      cells_on[machine].second = cells_on[machine].second || &cell == baseline;
    }
  }
  const auto most = std::max_element(cells_on.begin(), cells_on.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == cells_on.end() ? "" : most->first;
}

}  // namespace

Json machine_of(const EnvironmentRecord& e) {
  return {{"commit", e.commit},
          {kChanges, e.dirty},
          {"CPU", e.cpu},
          {"instructions", e.instruction_set},
          {"backend", e.backend},
          {"GPU", e.gpu.value_or("")},
          {"threads", e.threads},
          {"ranks", e.ranks},
          {"compiler", e.compiler},
          {"build", e.build},
          {"precision", e.precision}};
}

std::map<std::string, std::vector<const RecordFile*>> machines_of(const Cell& cell) {
  std::map<std::string, std::vector<const RecordFile*>> machines;
  for (const RecordFile* run : cell.runs) {
    if (run->record.speed.samples_per_second > 0.0) {
      machines[dump_json(machine_of(run->record.environment))].push_back(run);
    }
  }
  return machines;
}

void fill_times(Setting& setting, const Cell* baseline) {
  setting.machine = common_machine(setting, baseline);
  Json common;  // the machine itself
  for (const Cell& cell : setting.cells) {
    for (const auto& [machine, runs] : machines_of(cell)) {
      if (machine == setting.machine) common = machine_of(runs.front()->record.environment);
    }
  }
  for (Cell& cell : setting.cells) {
    if (cell.runs.empty()) continue;
    const auto machines = machines_of(cell);
    if (const auto found = machines.find(setting.machine); found != machines.end()) {
      cell.timed_runs = found->second.size();
      cell.ms_per_sample = ms_per_sample(found->second);
    } else if (!machines.empty()) {
      const Json own = machine_of(machines.begin()->second.front()->record.environment);
      cell.ms_withheld = fmt::format("{}", fmt::join(different_fields(own, common), ", "));
    }
    if (baseline == nullptr) continue;
    cell.relative_time = relative_time(cell, *baseline);
    if (std::isnan(cell.relative_time)) cell.time_withheld = machines_differ(cell, *baseline);
  }
}

}  // namespace lra
