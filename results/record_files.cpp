#include "results/record_files.h"

#include <glob.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "lib/util/check.h"
#include "lib/util/program.h"

namespace lra {

namespace {

namespace fs = std::filesystem;

// Folders that can't be entered are left out by name, links to folders are not followed.
void search(const fs::path& folder, std::vector<fs::path>& found, std::vector<std::string>& left_out) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) {
      search(entry->path(), found, left_out);
    } else if (entry->path().filename() == "result.json") {
      found.push_back(entry->path());
    }
  }
  if (error) left_out.push_back(one_line(fmt::format("{}: {}", folder.string(), error.message())));
}

void add_path(const fs::path& path, std::vector<fs::path>& found, std::vector<std::string>& left_out) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    search(path, found, left_out);
  } else {
    found.push_back(path);
  }
}

std::vector<fs::path> matches(const std::string& pattern) {
  std::vector<fs::path> paths;
  glob_t result{};
  if (glob(pattern.c_str(), 0, nullptr, &result) == 0) paths.assign(result.gl_pathv, result.gl_pathv + result.gl_pathc);
  globfree(&result);
  return paths;
}

// The same file under two names counts once.
void drop_repeats(std::vector<fs::path>& paths) {
  std::sort(paths.begin(), paths.end());
  std::vector<std::pair<fs::path, fs::path>> real;
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::path target = fs::canonical(path, error);
    real.emplace_back(error ? path : target, path);
  }
  std::stable_sort(real.begin(), real.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  real.erase(std::unique(real.begin(), real.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
             real.end());
  paths.clear();
  for (auto& [target, path] : real) paths.push_back(std::move(path));
  std::sort(paths.begin(), paths.end());
}

}  // namespace

void require_regular(const fs::path& path) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  if (fs::exists(status) && !fs::is_regular_file(status)) throw InputError("{}: not a regular file", path.string());
}

RecordFiles read_records(const std::vector<std::string>& paths) {
  RecordFiles files;
  std::vector<fs::path> found;
  for (const std::string& path : paths) {
    std::error_code unknown;
    if (fs::exists(fs::symlink_status(path, unknown))) {
      add_path(path, found, files.left_out);
      continue;
    }
    const std::vector<fs::path> matching = matches(path);
    if (matching.empty()) throw InputError("{}: no such file or folder", path);
    for (const fs::path& match : matching) add_path(match, found, files.left_out);
  }
  drop_repeats(found);

  // A record of a long run takes a millisecond to parse, and there may be thousands.
  std::vector<std::optional<Record>> records(found.size());
  std::vector<std::string> problems(found.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < found.size(); i = next++) {
      try {
        require_regular(found[i]);
        records[i] = read_record(found[i]);
      } catch (const std::exception& error) {
        problems[i] = one_line(error.what());
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const size_t wanted = std::min<size_t>(std::thread::hardware_concurrency(), found.size() / 16);
    for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
    work();
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (records[i]) {
      files.records.push_back({found[i], std::move(*records[i])});
    } else {
      files.left_out.push_back(problems[i]);
    }
  }
  return files;
}

}  // namespace lra
