// The lines a run leaves: predictions, metrics and norms, read into comparisons and reports.
#include "results/run_logs.h"

#include <algorithm>
#include <cmath>

#include "lib/util/json.h"
#include "results/predictions.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

void require_finite(const Course& course) {
  for (const auto& [step, value] : course) require(std::isfinite(value), "a value that is not finite");
}

}  // namespace

void run_logs(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const auto predictions = scratch_file("run/predictions-test.jsonl", text);
  accepts([&] {
    const Predictions read = read_predictions(predictions);
    const auto lines = std::count(text.begin(), text.end(), '\n') + (text.back() != '\n');
    require(static_cast<int64_t>(read.right.size()) == lines, "a line is lost");
  });
  // Reading with and without exceptions takes the same texts.
  require(try_parse_json(text).has_value() == accepts([&] { parse_json(text, "input"); }),
          "two readers of JSON differ");
  scratch_file("run/metrics.jsonl", text);
  scratch_file("run/norms.jsonl", text);
  // Never refused: what is wrong with a log is said in it.
  const RunLog log = read_run_log({predictions.parent_path() / "result.json", {}});
  require_finite(log.loss);
  require_finite(log.validation);
  for (const auto& [key, course] : log.norms) require_finite(course);
  for (const std::string& problem : log.problems) require(problem.find('\n') == std::string::npos, "two lines");
}

}  // namespace lra::fuzz
