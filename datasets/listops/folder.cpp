#include "datasets/listops/folder.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "datasets/find.h"

namespace lra::listops {
namespace fs = std::filesystem;
namespace {

constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

bool has(const fs::path& folder, Split split) {
  std::error_code ignored;
  return fs::is_regular_file(folder / file_name(split), ignored);
}

int files_of_three(const fs::path& folder) {
  int found = 0;
  for (const Split split : kSplits) found += has(folder, split) ? 1 : 0;
  return found;
}

std::string missing_file(const fs::path& folder) {
  const int found = files_of_three(folder);
  if (found == 0 || found == 3) return {};
  for (const Split split : kSplits) {
    if (!has(folder, split)) {
      return fmt::format("{}: {} is missing beside the other ListOps files", folder.string(), file_name(split));
    }
  }
  return {};
}

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
  return find_data(root, {.what = "ListOps",
                          .right = "give the folder with basic_train.tsv, basic_val.tsv and basic_test.tsv of the LRA "
                                   "release, or one up to four levels above it",
                          .is_folder = [](const fs::path& folder) { return files_of_three(folder) == 3; },
                          .problem = missing_file});
}

}  // namespace lra::listops
