// Reads tar archives (plain or compressed by gzip, bzip2, xz or zstd) one member after another, in bounded memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace lra {

// ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst": by name alone.
bool is_archive_name(const std::filesystem::path& path);

class ArchiveReader {
 public:
  // InputError naming the path: missing, forbidden, not an archive. Every call below throws InputError naming path and
  // member when the archive is cut short or damaged. (What a tar archive can't tell, stays unseen: a plain .tar that
  // ends exactly behind a member, and changed bytes that still unpack, since libarchive ignores gzip's checksum.)
  explicit ArchiveReader(const std::filesystem::path& path);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  // The next regular file, or link to one; false at the end. Members may come in any order and more than once.
  bool next();
  const std::string& name() const { return name_; }  // "aclImdb/train/pos/0_9.txt", without a leading "./"
  int64_t size() const { return size_; }             // bytes of this member, as its header says
  bool is_link() const { return link_; }             // hard or symbolic: the bytes lie elsewhere, reading is an error
  size_t read(std::span<char> buffer);               // bytes read, 0 at the member's end
  // The whole member. InputError when it is larger than `most` bytes.
  std::string read_all(int64_t most);

 private:
  [[noreturn]] void fail() const;
  [[noreturn]] void refuse_holes() const;

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::unique_ptr<void, void (*)(void*)> archive_;  // struct archive*, reads from file_
  std::string name_;
  int64_t size_ = 0;
  bool link_ = false;
  std::span<const char> block_;  // bytes of the member that the library has given and read() has not
  int64_t given_ = 0;            // bytes of the member that read() has given
};

}  // namespace lra
