// A file that stays on disk and is read at any place by many threads. Nothing of it is mapped: pages of a mapping count
// as memory of the process, those that the system keeps for pread do not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace lra {

class RandomFile {
 public:
  // InputError naming the path and the system's reason; also when it is no regular file.
  explicit RandomFile(const std::filesystem::path& path);
  ~RandomFile();
  RandomFile(const RandomFile&) = delete;
  RandomFile& operator=(const RandomFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened
  // Fills `buffer` with the bytes from `offset` on; they must lie within size(). Thread-safe. InputError when they are
  // no longer there.
  void read(uint64_t offset, std::span<char> buffer) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// XXH64 (seed 0) of a whole file, in bounded memory.
uint64_t hash_file(const std::filesystem::path& path);

}  // namespace lra
