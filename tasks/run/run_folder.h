// The folder a run writes into. It survives being killed at any instant: what state.json says can always be loaded.
//
// A checkpoint is a set of files named in state.json with their step and XXH64. It is written in this order:
//   1. every file beside its place, as NAME.new, flushed to disk;
//   2. the file in place gets a second name, NAME.previous, and NAME.new takes its place;
//   3. state.json is replaced (a rename): from here on the new set counts;
//   4. the NAME.previous go.
// Killed before 3, state.json names the previous set, each file of which is under NAME or NAME.previous: opening the
// folder finds it by its hash and puts it back. One process at a time has the folder.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/util/files.h"
#include "lib/util/json.h"

namespace lra {

struct CheckpointFile {
  std::string name;  // "checkpoint-last.safetensors"
  int64_t step = 0;
  std::function<void(const std::filesystem::path& path)> write;  // makes the file at `path`
};

class RunFolder {
 public:
  enum class Use { kNew, kForce, kResume };

  // Creates the folder and locks it. UsageError when another process has it, when it holds a run and `use` is kNew, or
  // when kResume finds a record but no run (but for the record of a run that failed before it began); InputError when
  // it can't be written, or when a checkpoint file is damaged.
  RunFolder(std::filesystem::path path, Use use);

  static constexpr const char* kLockFile = ".lock";
  // Of a folder that exists, without looking into it.
  static FileLock lock(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

  // What commit() wrote last, null where there is nothing to resume from.
  const Json& state() const { return state_; }

  // Removes the files of an earlier run, this class's and `others`. Called as late as possible, so that a run that
  // can't start does not cost the old one.
  void clear(const std::vector<std::string>& others);

  // Steps 1 to 4. Files of the last commit that are not among `files` stay part of the set. `state` is kept beside the
  // list of files. InputError when the disk is full or the like: the previous set then counts.
  void commit(const std::vector<CheckpointFile>& files, const Json& state);

 private:
  void recover();

  std::filesystem::path path_;
  FileLock lock_;
  Json state_;  // of state.json without "files"
  Json files_ = Json::object();
};

inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kRecordFile = "result.json";

// Keeps the lines for which keep(object) holds, in their order; a line that is no JSON object (cut by a crash) goes
// too. The file is replaced as a whole; a missing one stays missing.
void filter_json_lines(const std::filesystem::path& path, const std::function<bool(const Json&)>& keep);

}  // namespace lra
