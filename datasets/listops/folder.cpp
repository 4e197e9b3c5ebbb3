#include "datasets/listops/folder.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <vector>

#include "lib/util/check.h"

namespace lra::listops {
namespace fs = std::filesystem;
namespace {

constexpr int kLevels = 4;
constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

int files_of_three(const fs::path& folder) {
  int found = 0;
  for (const Split split : kSplits) {
    std::error_code ignored;
    found += fs::is_regular_file(folder / file_name(split), ignored) ? 1 : 0;
  }
  return found;
}

struct Search {
  std::vector<fs::path> whole, part;
  std::set<fs::path> seen;  // links may lead to one folder twice

  void visit(const fs::path& folder, int levels) {
    std::error_code error;
    fs::path real = fs::canonical(folder, error);
    if (error) return;
    const bool first_visit = seen.insert(std::move(real)).second;
    if (first_visit) {
      const int found = files_of_three(folder);
      if (found == 3) whole.push_back(folder);
      if (found == 1 || found == 2) part.push_back(folder);
    }
    if (levels == 0) return;
    std::vector<fs::path> below;
    // A folder that may not be listed is passed over.
    for (fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
         !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_directory(ignored)) below.push_back(entry->path());
    }
    std::sort(below.begin(), below.end());
    for (const fs::path& next : below) visit(next, levels - 1);
  }
};

}  // namespace

std::string file_name(Split split) {
  switch (split) {
    case Split::kTrain: return "basic_train.tsv";
    case Split::kValidation: return "basic_val.tsv";
    case Split::kTest: return "basic_test.tsv";
  }
  throw std::logic_error("internal error: no such split");
}

fs::path find_folder(const fs::path& root) {
  constexpr const char* kRight =
      "give the folder with basic_train.tsv, basic_val.tsv and basic_test.tsv of the LRA "
      "release, or one up to four levels above it";
  std::error_code error;
  const fs::file_status status = fs::status(root, error);
  if (!fs::exists(status)) {
    // A missing path is no error to the system, a forbidden one is.
    const bool missing = status.type() == fs::file_type::not_found;
    throw InputError("{}: {}; {}", root.string(), missing ? "no such folder" : error.message(), kRight);
  }
  if (!fs::is_directory(status)) throw InputError("{}: not a folder; {}", root.string(), kRight);
  fs::directory_iterator listable(root, error);
  if (error) throw InputError("{}: cannot be read: {}", root.string(), error.message());
  if (files_of_three(root) == 3) return root;

  Search search;
  search.visit(root, kLevels);
  if (search.whole.size() > 1) {
    throw InputError("{}: holds more than one ListOps set, {} and {}; name one of them", root.string(),
                     search.whole[0].string(), search.whole[1].string());
  }
  if (search.whole.size() == 1) return search.whole.front();
  if (!search.part.empty()) {
    for (const Split split : kSplits) {
      if (!fs::is_regular_file(search.part.front() / file_name(split), error)) {
        throw InputError("{}: {} is missing beside the other ListOps files", search.part.front().string(),
                         file_name(split));
      }
    }
  }
  throw InputError("{}: no ListOps data up to four levels below; {}", root.string(), kRight);
}

}  // namespace lra::listops
