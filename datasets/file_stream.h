// Files too large to hold: lines coming in one at a time, and a file going out that is whole or not there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lra {

// Reads a file line by line in bounded memory. Lines end with LF or CRLF, the last one also with the file.
// InputError naming the path and the system's reason when it cannot be opened or read.
class LineReader {
 public:
  static constexpr size_t kLongestLine = size_t{64} << 20;

  explicit LineReader(const std::filesystem::path& path, size_t longest = kLongestLine);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool next();                                     // false at the end of the file
  std::string_view line() const { return line_; }  // without its ending; valid until next()
  int64_t number() const { return number_; }       // of the line, from 1
  bool too_long() const { return too_long_; }      // the line exceeds `longest` bytes; line() is empty then

 private:
  bool fill();

  std::filesystem::path path_;
  int descriptor_ = -1;
  size_t longest_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // bytes of the buffer not yet given out
  std::string_view line_;
  int64_t number_ = 0;
  bool too_long_ = false;
  bool at_end_ = false;
};

// Writes PATH.partial and renames it: commit() makes the file appear with all its bytes on disk, and without a commit()
// nothing stays behind. InputError naming the path and the system's reason (no permission, disk full, another writer).
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void flush();   // all bytes to the disk, still under the partial name
  void commit();  // flush() and rename

 private:
  void write_out(std::string_view bytes);
  [[noreturn]] void fail(const char* action, int error) const;

  std::filesystem::path path_, partial_;
  int descriptor_ = -1;
  std::string buffer_;
};

}  // namespace lra
