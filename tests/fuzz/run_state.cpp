// What a resumed run reads of its folder: state.json, the counters and settings inside it, and lines of metrics.jsonl.
#include "lib/util/files.h"
#include "tasks/run/run_folder.h"
#include "tasks/run/settings.h"
#include "tasks/run/training_run.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

void run_state(Bytes bytes) {
  const std::filesystem::path folder = scratch_folder("run");
  scratch_file("run/state.json", text_of(bytes));
  accepts([&] {
    const Json state = RunFolder(folder, RunFolder::Use::kResume).state();
    accepts([&] {
      const Json counters = counters_to_json(counters_from_json(state, "state"));
      require(accepts([&] { counters_from_json(parse_json(dump_json(counters), "again"), "again"); }),
              "counters that were accepted are refused once written");
    });
    if (!state.is_object() || !state.contains("settings")) return;
    for (const TaskFacts& task : task_facts()) {
      accepts([&] { settings_to_json(resume_settings(task, {}, state["settings"], folder)); });
    }
  });
  const std::filesystem::path lines = scratch_file("run/metrics.jsonl", text_of(bytes));
  filter_json_lines(lines, [](const Json& line) { return line.contains("step"); });
  const std::string kept = read_file(lines);
  require(kept.empty() || kept.back() == '\n', "half a line is kept");
}

}  // namespace lra::fuzz
