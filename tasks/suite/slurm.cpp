#include "tasks/suite/slurm.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/json.h"
#include "lib/util/program.h"
#include "results/child_process.h"
#include "results/record.h"
#include "tasks/run/run_folder.h"

namespace lra {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSlurmFolder = ".slurm";
constexpr const char* kJobFile = "job.json";
constexpr int kSlurmSeconds = 60;  // for its commands

// A word as the shell reads it back.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string cell_line(const Cell& cell, const SlurmSettings& settings) {
  std::vector<std::string> words{(settings.programs / ("lra-" + cell.task)).string()};
  words.insert(words.end(), cell.line.words.begin() + 1, cell.line.words.end());
  words.insert(words.end(), {"--out", fs::absolute(cell.folder).string(), "--progress", "none", "--resume"});
  std::string line;
  for (const std::string& word : words) {
    if (word.find('\n') != std::string::npos) throw UsageError("--launcher slurm: {}: a line break", shown(word));
    line += (line.empty() ? "" : " ") + quoted(word);
  }
  return line;
}

std::string script(size_t cells, const fs::path& folder, const SlurmSettings& settings) {
  return fmt::format(R"script(#!/bin/bash
#SBATCH --job-name=lra-suite
#SBATCH --array=0-{last}{limit}
#SBATCH --cpus-per-task={threads}
#SBATCH --output="{folder}/task-%a.log"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
# Made by lra-suite: task number i trains cell i of cells.txt. Ended by SIGTERM it saves and goes back into the queue,
# but for a task that was cancelled.
line=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {list})
eval "cell=($line)"
stopped=no
"${{cell[@]}}" --threads "${{SLURM_CPUS_PER_TASK:-1}}" &
program=$!
trap 'stopped=yes; kill -TERM "$program" 2>/dev/null' TERM
wait "$program"
code=$?
# The trap ends a wait; the program is still saving then.
while kill -0 "$program" 2>/dev/null; do
  wait "$program"
  code=$?
done
if [ "$stopped" = yes ] && [ "$code" -ne 0 ] && scontrol show job "$SLURM_JOB_ID" | grep -q 'JobState=RUNNING'; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)script",
                     fmt::arg("last", cells - 1),
                     fmt::arg("limit", settings.at_once > 0 ? fmt::format("%{}", settings.at_once) : ""),
                     fmt::arg("threads", settings.threads), fmt::arg("folder", folder.string()),
                     fmt::arg("list", quoted((folder / "cells.txt").string())));
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// "12;cluster\n" is what sbatch --parsable prints.
std::string job_id(const std::string& output) {
  std::string id = output.substr(0, output.find_first_of(";\n"));
  if (id.empty() || !std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isdigit(c); })) {
    throw InputError("sbatch: no job number in what it printed: {}", shown(output));
  }
  return id;
}

// State of each task of an array that is still in the queue, by its number.
std::map<size_t, std::string> queued_tasks(const std::string& job) {
  const ChildResult result =
      run_child({"squeue", "--noheader", "--array", "--jobs=" + job, "--format=%K %T"}, "", kSlurmSeconds);
  std::map<size_t, std::string> tasks;
  if (!result.found) throw InputError("job {} of lra-suite: there is no squeue in PATH to ask for it", job);
  if (result.exit_code != 0) {
    // Jobs that have ended are forgotten after some minutes.
    if (result.errors.find("Invalid job id") != std::string::npos) return tasks;
    throw InputError("squeue: job {}: {}", job, one_line(result.errors));
  }
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() == 2 && std::isdigit(static_cast<unsigned char>(words[0][0]))) {
      tasks[std::stoul(words[0])] = words[1];
    }
  }
  return tasks;
}

}  // namespace

SlurmJob submit_array(const std::vector<const Cell*>& cells, const SlurmSettings& settings) {
  check(!cells.empty(), "an array of no cells");
  std::string stamp = utc_now();
  std::replace(stamp.begin(), stamp.end(), ':', '-');
  SlurmJob job;
  job.folder = fs::absolute(settings.out) / kSlurmFolder / fmt::format("{}-{}", stamp, getpid());
  if (job.folder.string().find_first_of("%\"\n") != std::string::npos) {
    throw UsageError("--out {}: Slurm can't write below a path with % or \"", shown(settings.out.string()));
  }
  make_directories(job.folder);
  std::string list;
  Json folders = Json::array();
  for (const Cell* cell : cells) {
    list += cell_line(*cell, settings) + "\n";
    folders.push_back(fs::absolute(cell->folder).lexically_normal().string());
  }
  write_file_atomic(job.folder / "cells.txt", list);
  write_file_atomic(job.folder / "job.sh", script(cells.size(), job.folder, settings));
  std::vector<std::string> command{"sbatch", "--parsable"};
  for (std::string& word : words_of(settings.options)) command.push_back(std::move(word));
  command.push_back((job.folder / "job.sh").string());
  const ChildResult result = run_child(command, "", kSlurmSeconds);
  if (!result.found) throw InputError("--launcher slurm: there is no sbatch in PATH");
  if (result.exit_code != 0) throw InputError("sbatch: {}", one_line(result.errors));
  job.id = job_id(result.output);
  write_file_atomic(job.folder / kJobFile, dump_json({{"job", job.id}, {"cells", folders}}, 1) + "\n");
  return job;
}

void add_queue(const fs::path& out, const std::vector<Cell>& cells, std::vector<CellState>& states) {
  std::map<std::string, size_t> by_folder;
  for (size_t i = 0; i < cells.size(); ++i) by_folder[fs::absolute(cells[i].folder).lexically_normal().string()] = i;
  std::error_code error;
  for (fs::directory_iterator entry(out / kSlurmFolder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path path = entry->path() / kJobFile;
    std::error_code unknown;
    if (!fs::exists(path, unknown)) continue;
    const Json json = read_json(path);
    if (!json.is_object() || !json.contains("job") || !json["job"].is_string() || !json.contains("cells")) continue;
    for (const auto& [task, state] : queued_tasks(json["job"].get<std::string>())) {
      if (task >= json["cells"].size() || !json["cells"][task].is_string()) continue;
      const auto cell = by_folder.find(json["cells"][task].get<std::string>());
      if (cell == by_folder.end()) continue;
      states[cell->second].status = state == "RUNNING" ? CellStatus::kRunning : CellStatus::kQueued;
    }
  }
}

}  // namespace lra
