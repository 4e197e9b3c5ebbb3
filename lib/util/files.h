// Files that are whole or not there: written beside, flushed to disk and renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace lra {

// InputError naming the path and the system's reason (missing, no permission, disk full).
std::string read_file(const std::filesystem::path& path);
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);
// Removes what writers killed in the middle of write_file_atomic left in a folder; call it as the folder's only writer.
void remove_temporaries(const std::filesystem::path& folder);
void make_directories(const std::filesystem::path& path);
uint64_t hash_bytes(std::string_view bytes);  // XXH64, seed 0
std::string hex64(uint64_t value);            // 16 lower-case digits

// Appends whole lines to a file and flushes each.
class LineWriter {
 public:
  LineWriter() = default;
  // append: keep what is there.
  LineWriter(const std::filesystem::path& path, bool append);
  ~LineWriter();
  LineWriter(LineWriter&& other) noexcept;
  LineWriter& operator=(LineWriter&& other) noexcept;
  void write(std::string_view line);  // a newline is added

 private:
  int descriptor_ = -1;
  std::filesystem::path path_;
};

// An exclusive lock that dies with the process (flock). Throws UsageError when another process holds it, and still does
// a moment later: some only look whether it is held.
class FileLock {
 public:
  FileLock() = default;
  FileLock(const std::filesystem::path& path, const std::string& what);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace lra
