#include "datasets/pathfinder/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "datasets/find.h"
#include "datasets/pathfinder/generator.h"
#include "lib/util/check.h"

namespace lra::pathfinder {
namespace fs = std::filesystem;
namespace {

bool is_set(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "imgs", ignored) && fs::is_directory(folder / "metadata", ignored);
}

std::optional<int64_t> number_in(const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::optional<int64_t> named_size(const fs::path& set) {
  constexpr std::string_view kName = "pathfinder";
  for (fs::path folder = set; folder.has_filename(); folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (!name.starts_with(kName)) continue;
    if (const auto size = number_in(name.substr(kName.size()))) return size;
  }
  return std::nullopt;
}

std::optional<std::string> named_level(const fs::path& set) {
  for (const char* level : {"baseline", "9", "14"}) {
    if (set.filename() == level_folder(level)) return level;
  }
  return std::nullopt;
}

// Without "." and "..", and without a slash at the end.
fs::path whole_path(const fs::path& path) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

// The set that this folder is `imgs`, `imgs/0` or `metadata` of.
std::optional<fs::path> set_above(const fs::path& folder) {
  fs::path above = whole_path(folder);
  for (int i = 0; i < 2 && above.has_relative_path(); ++i) {
    above = above.parent_path();
    if (is_set(above)) return above;
  }
  return std::nullopt;
}

// How the names of a set contradict the options; empty: they don't.
std::string contradiction(const fs::path& folder, int size, const std::string& level) {
  const fs::path set = whole_path(folder);
  if (const auto named = named_size(set); named && *named != size) {
    return fmt::format("{}: a set of size {} by the name of its folder, but --size is {}", folder.string(), *named,
                       size);
  }
  if (const auto named = named_level(set); named && *named != level) {
    return fmt::format("{}: a set of level {} by its name, but --level is {}", folder.string(), *named, level);
  }
  return {};
}

}  // namespace

fs::path find_folder(const fs::path& root, int size, const std::string& level) {
  const std::string right = fmt::format(
      "give the folder with imgs and metadata of the LRA release (pathfinder{}/{}), or one up to four levels above it",
      size, level_folder(level));
  const auto problem = [&](const fs::path& folder) -> std::string {
    if (is_set(folder)) return contradiction(folder, size, level);
    if (const auto set = set_above(folder)) {
      return fmt::format("{}: only a part of the set {}", folder.string(), set->string());
    }
    std::error_code ignored;
    for (const auto& [there, missing] : {std::pair{"imgs", "metadata"}, std::pair{"metadata", "imgs"}}) {
      if (fs::is_directory(folder / there, ignored)) {
        return fmt::format("{}: the folder {} is missing beside {}", folder.string(), missing, there);
      }
    }
    return {};
  };
  return find_data(
      root, {.what = "Pathfinder",
             .right = right,
             .is_folder =
                 [&](const fs::path& folder) { return is_set(folder) && contradiction(folder, size, level).empty(); },
             .problem = problem,
             .is_closed = [](const fs::path& folder) { return is_set(folder) || set_above(folder); }});
}

std::vector<fs::path> metadata_files(const fs::path& folder) {
  const fs::path lists = folder / "metadata";
  std::vector<std::pair<int64_t, fs::path>> numbered;
  std::vector<fs::path> others;
  std::error_code error;
  for (fs::directory_iterator entry(lists, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (path.extension() != ".npy" || entry->is_directory(ignored)) continue;
    if (const auto number = number_in(path.stem().string())) {
      numbered.emplace_back(*number, path);
    } else {
      others.push_back(path);
    }
  }
  if (error) throw InputError("{}: cannot be read: {}", lists.string(), error.message());
  std::sort(numbered.begin(), numbered.end());
  std::sort(others.begin(), others.end());
  std::vector<fs::path> files;
  files.reserve(numbered.size());
  for (auto& [number, path] : numbered) files.push_back(std::move(path));
  if (files.empty()) files = std::move(others);
  if (files.empty()) {
    throw InputError("{}: no list of pictures; right are files 0.npy, 1.npy and so on", lists.string());
  }
  return files;
}

}  // namespace lra::pathfinder
