#include "datasets/text/find.h"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "datasets/archive.h"
#include "datasets/find.h"

namespace lra::text {
namespace fs = std::filesystem;

namespace {

constexpr const char* kFolders[] = {"train/neg", "train/pos", "test/neg", "test/pos"};

bool has(const fs::path& folder, const char* part) {
  std::error_code ignored;
  return fs::is_directory(folder / part, ignored);
}

int folders_of_four(const fs::path& folder) {
  int found = 0;
  for (const char* part : kFolders) found += has(folder, part) ? 1 : 0;
  return found;
}

std::string problem(const fs::path& folder) {
  if (folders_of_four(folder) > 0) {
    for (const char* part : kFolders) {
      if (!has(folder, part)) return fmt::format("{}: {} is missing beside the other three", folder.string(), part);
    }
  }
  // aclImdb/train or aclImdb/train/pos instead of aclImdb.
  std::error_code error;
  fs::path above = fs::canonical(folder, error);
  for (int level = 0; level < 2 && !error; ++level) {
    above = above.parent_path();
    if (folders_of_four(above) == 4) {
      return fmt::format("{}: a part of the Text data only, the whole is {}", folder.string(), above.string());
    }
  }
  return {};
}

}  // namespace

fs::path find_set(const fs::path& root) {
  std::error_code ignored;
  const bool named = fs::is_regular_file(root, ignored);
  return find_data(root, {.what = "Text",
                          .right = kRight,
                          .is_folder = [](const fs::path& folder) { return folders_of_four(folder) == 4; },
                          .is_file =
                              [named](const fs::path& file) {
                                return is_archive_name(file) &&
                                       (named || file.filename().string().starts_with("aclImdb"));
                              },
                          .problem = problem});
}

}  // namespace lra::text
