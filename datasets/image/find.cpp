#include "datasets/image/find.h"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "datasets/archive.h"
#include "datasets/find.h"

namespace lra::image {
namespace fs = std::filesystem;
namespace {

bool has(const fs::path& folder, const char* batch) {
  std::error_code ignored;
  return fs::is_regular_file(folder / batch, ignored);
}

size_t batches_of_six(const fs::path& folder) {
  size_t found = 0;
  for (const char* batch : kBatches) found += has(folder, batch) ? 1 : 0;
  return found;
}

std::string problem(const fs::path& folder) {
  const size_t found = batches_of_six(folder);
  if (found == 0 || found == kBatches.size()) return {};
  for (const char* batch : kBatches) {
    if (has(folder, batch)) continue;
    std::error_code ignored;
    return fmt::format("{}: {} beside the other CIFAR-10 batches", (folder / batch).string(),
                       fs::exists(folder / batch, ignored) ? "not a file" : "is missing");
  }
  return {};
}

}  // namespace

fs::path find_set(const fs::path& root) {
  std::error_code ignored;
  const bool named = fs::is_regular_file(root, ignored);
  return find_data(root, {.what = "Image",
                          .right = kRight,
                          .is_folder = [](const fs::path& folder) { return batches_of_six(folder) == kBatches.size(); },
                          .is_file =
                              [named](const fs::path& file) {
                                return is_archive_name(file) &&
                                       (named || file.filename().string().starts_with("cifar-10-binary"));
                              },
                          .problem = problem});
}

}  // namespace lra::image
