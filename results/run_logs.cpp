#include "results/run_logs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/json.h"
#include "lib/util/program.h"

namespace lra {

namespace {

constexpr size_t kMostBroken = 1000;  // lines: then it is no log
constexpr double kLargest = 1e100;    // beyond it no axis can be drawn

std::optional<double> number(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::abs(value) < kLargest ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> whole(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

// Calls take(line) for each object of the file; says how many lines are none. False: there is no such file.
template <class Take>
bool each_line(const std::filesystem::path& file, std::vector<std::string>& problems, Take&& take) {
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) return false;
  std::string text;
  try {
    require_regular(file);
    text = read_file(file);
  } catch (const InputError& error) {
    problems.push_back(one_line(error.what()));
    return false;
  }
  size_t broken = 0, first = 0;
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::optional<Json> line = try_parse_json(std::string_view(text).substr(begin, end - begin));
    if (line && line->is_object() && whole(*line, "step")) {
      take(*line);
    } else if (broken++ == 0) {
      first = number;
    }
    if (broken == kMostBroken) break;
    begin = end + 1;
  }
  if (broken > 0) {
    problems.push_back(
        one_line(fmt::format("{}:{}: not a line of this file ({} such in all, left out{})", file.string(), first,
                             broken, broken == kMostBroken ? "; what follows them is not read" : "")));
  }
  return true;
}

void take_metrics(RunLog& log, const Json& line) {
  const auto split = line.find("split");
  if (split == line.end() || !split->is_string()) return;
  const int64_t step = *whole(line, "step");
  if (*split == "train") {
    if (const auto loss = number(line, "loss")) log.loss[step] = *loss;
  } else if (*split == "validation") {
    if (const auto accuracy = number(line, "accuracy")) log.validation[step] = *accuracy;
  }
}

using Sums = std::map<std::pair<std::string, int64_t>, std::map<int64_t, std::pair<double, int>>>;

void take_norms(Sums& sums, const Json& line) {
  const auto step = whole(line, "step"), layer = whole(line, "layer");
  if (!step || !layer) return;
  for (const NormKind& kind : kNormKinds) {
    const auto value = number(line, kind.key);
    if (!value) continue;
    auto& [sum, heads] = sums[{kind.key, *layer}][*step];
    sum += *value;
    ++heads;
  }
}

}  // namespace

RunLog read_run_log(const RecordFile& run) {
  RunLog log;
  const std::filesystem::path folder = run.path.parent_path();
  if (!each_line(folder / "metrics.jsonl", log.problems, [&](const Json& line) { take_metrics(log, line); })) {
    log.has_metrics = false;
    for (const EvaluationRecord& e : run.record.history) {
      if (e.split == "validation" && e.step && std::isfinite(e.accuracy)) log.validation[*e.step] = e.accuracy;
    }
  }
  Sums sums;
  if (!each_line(folder / "norms.jsonl", log.problems, [&](const Json& line) { take_norms(sums, line); })) {
    for (const Json& line : run.record.norms) {
      if (line.is_object()) take_norms(sums, line);
    }
  }
  for (const auto& [key, steps] : sums) {
    for (const auto& [step, sum] : steps) log.norms[key][step] = sum.first / sum.second;
  }
  return log;
}

}  // namespace lra
