// What a user sees on stderr while a program works: whole lines, and below them one line that is drawn over again (the
// progress bar). Lines can also go to a file; the bar never does. Thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lib/util/files.h"

namespace lra {

class Log {
 public:
  // Lines on stderr begin with nothing; errors are printed by run_program.
  Log() = default;
  struct Quiet {};
  explicit Log(Quiet) : quiet_(true) {}  // nothing on stderr
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // From here on lines go to `path` too, first those that were printed before. `append`: keep what is there. InputError
  // when it can't be written.
  void open(const std::filesystem::path& path, bool append);

  void line(std::string_view text);       // stderr and file
  void file_line(std::string_view text);  // file only; errors of the file are ignored
  // Draws `text` in place of the last status; "" takes it away. One terminal line, never wrapped.
  void status(std::string_view text);

 private:
  void clear_status();

  std::mutex mutex_;
  bool quiet_ = false;
  std::unique_ptr<LineWriter> file_;
  std::vector<std::string> early_;  // lines before there is a file
  std::string status_;
};

// Columns of the terminal behind stderr; 0 when it is none.
int terminal_columns();

}  // namespace lra
