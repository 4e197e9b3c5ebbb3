#include "datasets/find.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <vector>

#include "lib/util/check.h"

namespace lra {
namespace fs = std::filesystem;
namespace {

constexpr int kLevels = 4;

struct Search {
  const DataKind& kind;
  std::vector<fs::path> found = {};
  std::string problem = {};           // of the first folder with part of a set
  std::map<fs::path, int> seen = {};  // real path -> levels that were below it; links may lead to one place twice

  enum class Visit { kFirst, kDeeper, kNothingNew };
  Visit note(const fs::path& path, int levels) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) return Visit::kNothingNew;
    const auto [at, added] = seen.emplace(real, levels);
    if (added) return Visit::kFirst;
    if (levels <= at->second) return Visit::kNothingNew;
    at->second = levels;
    return Visit::kDeeper;
  }

  void visit(const fs::path& folder, int levels) {
    const Visit visit_kind = note(folder, levels);
    if (visit_kind == Visit::kNothingNew) return;
    if (kind.is_folder && kind.is_folder(folder)) {
      if (visit_kind == Visit::kFirst) found.push_back(folder);
      return;
    }
    if (kind.problem && problem.empty()) problem = kind.problem(folder);
    if (levels == 0 || (kind.is_closed && kind.is_closed(folder))) return;
    std::vector<fs::path> folders, files;
    std::error_code error;
    // A folder that may not be listed is passed over.
    for (fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
         !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_directory(ignored)) {
        folders.push_back(entry->path());
      } else if (kind.is_file && entry->is_regular_file(ignored)) {
        files.push_back(entry->path());
      }
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      if (kind.is_file(file) && note(file, 0) == Visit::kFirst) found.push_back(file);
    }
    std::sort(folders.begin(), folders.end());
    for (const fs::path& next : folders) visit(next, levels - 1);
  }
};

}  // namespace

fs::path find_data(const fs::path& root, const DataKind& kind) {
  std::error_code error;
  const fs::file_status status = fs::status(root, error);
  if (!fs::exists(status)) {
    // A missing path is no error to the system, a forbidden one is.
    const bool missing = status.type() == fs::file_type::not_found;
    throw InputError("{}: {}; {}", root.string(), missing ? "no such file or folder" : error.message(), kind.right);
  }
  if (fs::is_regular_file(status)) {
    if (kind.is_file && kind.is_file(root)) return root;
    throw InputError("{}: not {} data; {}", root.string(), kind.what, kind.right);
  }
  if (!fs::is_directory(status)) throw InputError("{}: neither file nor folder; {}", root.string(), kind.right);
  const fs::directory_iterator listable(root, error);
  if (error) throw InputError("{}: cannot be read: {}", root.string(), error.message());

  Search search{.kind = kind};
  search.visit(root, kLevels);
  if (search.found.size() > 1) {
    throw InputError("{}: holds more than one {} set, {} and {}; name one of them", root.string(), kind.what,
                     search.found[0].string(), search.found[1].string());
  }
  if (search.found.size() == 1) return search.found.front();
  if (!search.problem.empty()) throw InputError("{}; {}", search.problem, kind.right);
  throw NothingFound("{}: no {} data up to four levels below; {}", root.string(), kind.what, kind.right);
}

}  // namespace lra
