// The run folder survives being killed at any instant.
#include "tasks/run/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "lib/util/check.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {
namespace {

namespace fs = std::filesystem;
using Use = RunFolder::Use;

constexpr const char* kModel = "checkpoint-last.safetensors";
constexpr const char* kOptimizer = "optimizer-last.safetensors";

std::string content(const std::string& name, int64_t step) {
  return name + " of step " + std::to_string(step) + std::string(5000, 'x');
}

std::vector<CheckpointFile> pair_of(int64_t step) {
  std::vector<CheckpointFile> files;
  for (const char* name : {kModel, kOptimizer}) {
    files.push_back({name, step, [=](const fs::path& path) { write_file_atomic(path, content(name, step)); }});
  }
  return files;
}

void commit(RunFolder& folder, int64_t step) { folder.commit(pair_of(step), {{"step", step}}); }

// Opens the folder as --resume does and checks that the state's files are those of its step.
int64_t resumed_step(const fs::path& path) {
  const RunFolder folder(path, Use::kResume);
  if (folder.state().is_null()) return -1;
  const auto step = folder.state().at("step").get<int64_t>();
  for (const char* name : {kModel, kOptimizer}) EXPECT_EQ(read_file(path / name), content(name, step)) << name;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.find(".new") == std::string::npos && name.find(".previous") == std::string::npos &&
                name.find(".tmp-") == std::string::npos)
        << name << " was left behind";
  }
  return step;
}

std::map<std::string, std::string> snapshot(const fs::path& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(path)) files[entry.path().filename()] = read_file(entry.path());
  return files;
}

void restore(const fs::path& path, const std::map<std::string, std::string>& files) {
  fs::remove_all(path);
  fs::create_directories(path);
  for (const auto& [name, text] : files) write_file_atomic(path / name, text);
}

TEST(RunFolder, CommitsAndResumes) {
  TemporaryFolder folder;
  const fs::path path = folder / "run";
  {
    RunFolder run(path, Use::kNew);
    EXPECT_TRUE(run.state().is_null());
    commit(run, 0);
    commit(run, 7);
  }
  EXPECT_EQ(resumed_step(path), 7);
}

TEST(RunFolder, FilesThatDidNotChangeStayInTheSet) {
  TemporaryFolder folder;
  const fs::path path = folder / "run";
  {
    RunFolder run(path, Use::kNew);
    commit(run, 7);
    run.commit({}, {{"step", 7}, {"evaluated", true}});
  }
  EXPECT_EQ(resumed_step(path), 7);
}

// Every state of the folder between two commits, made by hand in the order of the header.
TEST(RunFolder, EveryPointOfACrashIsRecovered) {
  TemporaryFolder folder;
  const fs::path path = folder / "run";
  {
    RunFolder run(path, Use::kNew);
    commit(run, 1);
  }
  const auto before = snapshot(path);
  {
    RunFolder run(path, Use::kResume);
    commit(run, 2);
  }
  const auto after = snapshot(path);

  auto files = before;
  std::vector<std::pair<std::map<std::string, std::string>, int64_t>> points;
  const auto point = [&](int64_t step) { points.emplace_back(files, step); };
  for (const char* name : {kModel, kOptimizer}) {
    files[std::string(name) + ".new.tmp-1-0"] = "half";
    point(1);
    files.erase(std::string(name) + ".new.tmp-1-0");
    files[std::string(name) + ".new"] = after.at(name);
    point(1);
  }
  for (const char* name : {kModel, kOptimizer}) {
    files[std::string(name) + ".previous"] = before.at(name);
    point(1);
    auto renamed = files;  // a file system without hard links
    renamed.erase(name);
    points.emplace_back(renamed, 1);
    files[name] = after.at(name);
    files.erase(std::string(name) + ".new");
    point(1);
  }
  files["state.json.tmp-1-3"] = "{";
  point(1);
  files.erase("state.json.tmp-1-3");
  files["state.json"] = after.at("state.json");
  point(2);
  files.erase(std::string(kModel) + ".previous");
  point(2);
  EXPECT_EQ(points.size(), 13u);
  for (size_t i = 0; i < points.size(); ++i) {
    restore(path, points[i].first);
    EXPECT_EQ(resumed_step(path), points[i].second) << "point " << i;
    EXPECT_EQ(resumed_step(path), points[i].second) << "point " << i << ", opened again";
    RunFolder run(path, Use::kResume);
    commit(run, 3);
  }
  EXPECT_EQ(resumed_step(path), 3);
}

// What state.json says without opening the folder.
int64_t committed_step(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path / "state.json", error)) return -1;
  return read_json(path / "state.json").at("state").at("step").get<int64_t>();
}

TEST(RunFolder, KilledAtRandomMoments) {
  TemporaryFolder folder;
  const fs::path path = folder / "run";
  int64_t last = -1;
  for (int round = 0; round < 40; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        RunFolder run(path, Use::kResume);
        int64_t step = run.state().is_null() ? 0 : run.state().at("step").get<int64_t>() + 1;
        for (;; ++step) commit(run, step);
      } catch (...) {
        _exit(1);
      }
    }
    // Once it has committed, however slow the disk, at some moment of one of the next commits.
    for (int wait = 0; wait < 5000 && committed_step(path) <= last; ++wait) usleep(1000);
    usleep(static_cast<useconds_t>(977 * round % 15000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
    const int64_t step = resumed_step(path);
    EXPECT_GE(step, last);
    last = step;
  }
  EXPECT_GE(last, 39) << "every round committed";
}

TEST(RunFolder, AFailingWriteKeepsThePreviousSet) {
  TemporaryFolder folder;
  const fs::path path = folder / "run";
  {
    RunFolder run(path, Use::kNew);
    commit(run, 1);
    std::vector<CheckpointFile> files = pair_of(2);
    files.back().write = [](const fs::path&) { throw InputError("No space left on device"); };
    EXPECT_THROW(run.commit(files, {{"step", 2}}), InputError);
    EXPECT_FALSE(fs::exists(path / (std::string(kModel) + ".new"))) << "its space is given back";
    EXPECT_EQ(run.state().at("step"), 1);
  }
  EXPECT_EQ(resumed_step(path), 1);
}

TEST(RunFolder, OccupiedForcedAndSecondWriter) {
  TemporaryFolder folder;
  const fs::path path = folder / "run";
  {
    RunFolder run(path, Use::kNew);
    commit(run, 1);
    EXPECT_THROW(RunFolder(path, Use::kResume), UsageError) << "a second writer";
    EXPECT_THROW(RunFolder(path, Use::kForce), UsageError) << "a second writer";
  }
  EXPECT_THROW(RunFolder(path, Use::kNew), UsageError);
  {
    RunFolder run(path, Use::kForce);
    EXPECT_TRUE(fs::exists(path / kModel)) << "nothing goes before clear()";
    write_file_atomic(path / "mine.txt", "kept");
    run.clear({"metrics.jsonl"});
    EXPECT_FALSE(fs::exists(path / kModel));
    EXPECT_TRUE(fs::exists(path / "mine.txt"));
  }
  EXPECT_NO_THROW(RunFolder(path, Use::kNew));
  write_file_atomic(path / "result.json", "{}");
  EXPECT_THROW(RunFolder(path, Use::kResume), UsageError) << "a record without a run";
}

TEST(RunFolder, DamagedFilesAreNamed) {
  TemporaryFolder folder;
  const fs::path path = folder / "run";
  {
    RunFolder run(path, Use::kNew);
    commit(run, 1);
  }
  write_file_atomic(path / kOptimizer, "damaged");
  try {
    const RunFolder run(path, Use::kResume);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(kOptimizer), std::string::npos) << error.what();
  }
  for (const char* text : {"{", "[]", "{}", R"({"format":1,"files":{},"state":{}})",
                           R"({"format":"lra-state/1","files":{"a":1},"state":{}})",
                           R"({"format":"lra-state/1","files":{"../a":{"xxh64":"0"}},"state":{}})"}) {
    write_file_atomic(path / "state.json", text);
    EXPECT_THROW(RunFolder(path, Use::kResume), InputError) << text;
  }
}

TEST(RunFolder, AFileInTheWayIsAnInputError) {
  TemporaryFolder folder;
  write_file_atomic(folder / "file", "");
  EXPECT_THROW(RunFolder(folder / "file", Use::kNew), InputError);
  EXPECT_THROW(RunFolder(folder.path() / "file" / "run", Use::kNew), InputError);
}

TEST(JsonLines, AreFilteredAndHalfLinesGo) {
  TemporaryFolder folder;
  const fs::path path = folder / "metrics.jsonl";
  filter_json_lines(path, [](const Json&) { return true; });
  EXPECT_FALSE(fs::exists(path));
  write_file_atomic(path, "{\"step\":1}\n{\"step\":2}\nnoise\n{\"step\":3}\n{\"st");
  filter_json_lines(path, [](const Json& line) { return line["step"] != 2; });
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":3}\n");
}

}  // namespace
}  // namespace lra
