#include "tasks/run/run_folder.h"

#include <unistd.h>

#include <system_error>

#include "lib/util/check.h"

namespace lra {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStateFormat = "lra-state/1";

fs::path with(const fs::path& path, const char* suffix) { return path.string() + suffix; }

bool has_hash(const fs::path& path, const std::string& hash) {
  std::error_code error;
  return fs::is_regular_file(path, error) && hex64(hash_bytes(read_file(path))) == hash;
}

bool failed_to_begin(const fs::path& record) {
  try {
    return read_json(record).at("status") == "failed";
  } catch (const std::exception&) {
    return false;
  }
}

void rename_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw InputError("cannot write {}: {}", to.string(), error.message());
}

// The file in place stays reachable as NAME.previous.
void keep_previous(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const fs::path previous = with(path, ".previous");
  fs::remove(previous, error);
  fs::create_hard_link(path, previous, error);
  if (error) rename_file(path, previous);  // a file system without hard links
}

}  // namespace

RunFolder::RunFolder(fs::path path, Use use) : path_(std::move(path)) {
  make_directories(path_);
  lock_ = lock(path_);
  const bool has_state = fs::exists(path_ / kStateFile), has_record = fs::exists(path_ / kRecordFile);
  if (use == Use::kNew && (has_state || has_record)) {
    throw UsageError(
        "--out: {} already holds a run; go on with --resume, overwrite it with --force, or choose another "
        "folder",
        path_.string());
  }
  if (use == Use::kResume && !has_state && has_record && !failed_to_begin(path_ / kRecordFile)) {
    throw UsageError("--resume: {} holds a record but no training run (no {})", path_.string(), kStateFile);
  }
  if (use == Use::kResume && has_state) recover();
}

FileLock RunFolder::lock(const fs::path& path) { return {path / kLockFile, "the run folder " + path.string()}; }

void RunFolder::recover() {
  const fs::path state_path = path_ / kStateFile;
  const Json json = read_json(state_path);
  if (!json.is_object() || !json.contains("format") || json["format"] != kStateFormat || !json.contains("files") ||
      !json["files"].is_object() || !json.contains("state")) {
    throw InputError("{}: not the state of a run ({})", state_path.string(), kStateFormat);
  }
  files_ = json["files"];
  state_ = json["state"];
  for (const auto& [name, entry] : files_.items()) {
    if (!entry.is_object() || !entry.contains("xxh64") || !entry["xxh64"].is_string() ||
        name.find('/') != std::string::npos) {
      throw InputError("{}: files: {}: want a step and an XXH64", state_path.string(), name);
    }
    const std::string hash = entry["xxh64"].get<std::string>();
    const fs::path place = path_ / name, previous = with(place, ".previous");
    if (has_hash(place, hash)) continue;
    if (!has_hash(previous, hash)) {
      throw InputError("{}: missing or damaged: its XXH64 is not {}, as {} says", place.string(), hash,
                       state_path.string());
    }
    rename_file(previous, place);
  }
  for (const auto& [name, entry] : files_.items()) {
    std::error_code ignored;
    for (const char* suffix : {".new", ".previous"}) fs::remove(with(path_ / name, suffix), ignored);
  }
  remove_temporaries(path_);
}

void RunFolder::clear(const std::vector<std::string>& others) {
  std::vector<std::string> names = {kRecordFile, kStateFile};
  for (const char* name :
       {"checkpoint-best.safetensors", "checkpoint-last.safetensors", "optimizer-last.safetensors"}) {
    for (const char* suffix : {"", ".new", ".previous"}) names.push_back(std::string(name) + suffix);
  }
  names.insert(names.end(), others.begin(), others.end());
  for (const std::string& name : names) {
    std::error_code error;
    fs::remove(path_ / name, error);
    if (error) throw InputError("cannot remove {}: {}", (path_ / name).string(), error.message());
  }
  remove_temporaries(path_);
  state_ = nullptr;
  files_ = Json::object();
}

void RunFolder::commit(const std::vector<CheckpointFile>& files, const Json& state) {
  Json all = files_;
  try {
    for (const CheckpointFile& file : files) {
      const fs::path fresh = with(path_ / file.name, ".new");
      file.write(fresh);
      all[file.name] = {{"step", file.step}, {"xxh64", hex64(hash_bytes(read_file(fresh)))}};
    }
  } catch (...) {  // a full disk: give back what was taken
    std::error_code ignored;
    for (const CheckpointFile& file : files) fs::remove(with(path_ / file.name, ".new"), ignored);
    throw;
  }
  for (const CheckpointFile& file : files) {
    keep_previous(path_ / file.name);
    rename_file(with(path_ / file.name, ".new"), path_ / file.name);
  }
  const Json document = {{"format", kStateFormat}, {"files", all}, {"state", state}};
  write_file_atomic(path_ / kStateFile, dump_json(document, 1) + "\n");
  files_ = all;
  state_ = state;
  for (const CheckpointFile& file : files) {
    std::error_code ignored;
    fs::remove(with(path_ / file.name, ".previous"), ignored);
  }
}

void filter_json_lines(const fs::path& path, const std::function<bool(const Json&)>& keep) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const std::string text = read_file(path);
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // a line without its end is half a line
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && keep(json)) kept.append(line).push_back('\n');
    begin = end + 1;
  }
  if (kept != text) write_file_atomic(path, kept);
}

}  // namespace lra
