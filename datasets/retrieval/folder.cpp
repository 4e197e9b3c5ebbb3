#include "datasets/retrieval/folder.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "datasets/archive.h"
#include "datasets/find.h"
#include "lib/util/check.h"

namespace lra::retrieval {
namespace fs = std::filesystem;
namespace {

constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

// How far an archive is looked into: a search meets others, which may be huge, and to pass over a member costs reading
// it.
constexpr int kMembers = 8;
constexpr int64_t kPassedBytes = int64_t{16} << 20;

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
      return fmt::format("{}: {} is missing beside the other Retrieval files", folder.string(), file_name(split));
    }
  }
  return {};
}

// While others are searched, a damaged archive is just no candidate.
bool is_candidate(const fs::path& file) {
  try {
    return is_archive_name(file) && is_retrieval_archive(file);
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::string file_name(Split split) {
  switch (split) {
    case Split::kTrain: return "new_aan_pairs.train.tsv";
    case Split::kValidation: return "new_aan_pairs.eval.tsv";
    case Split::kTest: return "new_aan_pairs.test.tsv";
  }
  throw std::logic_error("internal error: no such split");
}

std::optional<Split> split_of(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);  // npos + 1 = 0
  for (const Split split : kSplits) {
    if (last == file_name(split)) return split;
  }
  return std::nullopt;
}

bool is_retrieval_archive(const fs::path& path) {
  ArchiveReader archive(path);
  int64_t passed = 0;
  for (int i = 0; i < kMembers && passed <= kPassedBytes && archive.next(); ++i) {
    if (split_of(archive.name())) return true;
    passed += archive.size();
  }
  return false;
}

fs::path find_set(const fs::path& root) {
  std::error_code ignored;
  if (fs::is_regular_file(root, ignored) && is_archive_name(root)) {
    if (is_retrieval_archive(root)) return root;
    throw InputError("{}: none of its first members is a new_aan_pairs.*.tsv; {}", root.string(), kRight);
  }
  return find_data(root, {.what = "Retrieval",
                          .right = kRight,
                          .is_folder = [](const fs::path& folder) { return files_of_three(folder) == 3; },
                          .is_file = is_candidate,
                          .problem = missing_file});
}

}  // namespace lra::retrieval
