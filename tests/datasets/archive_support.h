// Archives for tests: packed as wanted, good or bad, and unpacked again; and files that may not be read.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "datasets/archive.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {

struct Member {
  enum class Kind { kFile, kFolder, kHardLink, kSymbolicLink };
  std::string name;
  std::string bytes;  // of a link its target
  Kind kind = Kind::kFile;
};

// The compression follows from the name's ending: .gz, .bz2, .xz, .zst, else none.
inline void pack(const std::filesystem::path& path, const std::vector<Member>& members) {
  struct archive* out = archive_write_new();
  archive_write_set_format_pax_restricted(out);
  const std::string name = path.string();
  if (name.ends_with("gz")) archive_write_add_filter_gzip(out);
  if (name.ends_with("bz2")) archive_write_add_filter_bzip2(out);
  if (name.ends_with("xz")) archive_write_add_filter_xz(out);
  if (name.ends_with("zst")) archive_write_add_filter_zstd(out);
  std::filesystem::create_directories(path.parent_path());
  bool good = archive_write_open_filename(out, path.c_str()) == ARCHIVE_OK;
  for (const Member& member : members) {
    struct archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_perm(entry, member.kind == Member::Kind::kFolder ? 0755 : 0644);
    archive_entry_set_filetype(entry, member.kind == Member::Kind::kFolder         ? AE_IFDIR
                                      : member.kind == Member::Kind::kSymbolicLink ? AE_IFLNK
                                                                                   : AE_IFREG);
    if (member.kind == Member::Kind::kHardLink) archive_entry_set_hardlink(entry, member.bytes.c_str());
    if (member.kind == Member::Kind::kSymbolicLink) archive_entry_set_symlink(entry, member.bytes.c_str());
    const bool file = member.kind == Member::Kind::kFile;
    archive_entry_set_size(entry, file ? static_cast<int64_t>(member.bytes.size()) : 0);
    good = good && archive_write_header(out, entry) >= ARCHIVE_WARN;  // warns of names outside the locale
    if (file && !member.bytes.empty()) {
      good = good && archive_write_data(out, member.bytes.data(), member.bytes.size()) ==
                         static_cast<ssize_t>(member.bytes.size());
    }
    archive_entry_free(entry);
  }
  good = archive_write_close(out) == ARCHIVE_OK && good;
  archive_write_free(out);
  if (!good) throw std::runtime_error("cannot pack " + name);
}

// Regular files, in the archive's order.
inline std::vector<Member> members_of(const std::filesystem::path& path) {
  std::vector<Member> members;
  ArchiveReader archive(path);
  while (archive.next()) members.push_back({archive.name(), archive.read_all(1 << 24)});
  return members;
}

inline void unpack(const std::filesystem::path& path, const std::filesystem::path& folder) {
  for (const Member& member : members_of(path)) put_file(folder / member.name, member.bytes);
}

// From here to its end the process is nobody, so that permissions count for tests run by root, too. False where the
// system does not allow it.
class AsNobody {
 public:
  AsNobody() : user_(::geteuid()), changed_(user_ == 0 && ::seteuid(65534) == 0) {}
  ~AsNobody() {
    if (changed_ && ::seteuid(user_) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  explicit operator bool() const { return changed_ || user_ != 0; }

 private:
  uid_t user_;
  bool changed_;
};

inline void allow_all(const std::filesystem::path& path) {
  std::filesystem::permissions(path, std::filesystem::perms::all);
}
inline void forbid_all(const std::filesystem::path& path) {
  std::filesystem::permissions(path, std::filesystem::perms::none);
}

}  // namespace lra
