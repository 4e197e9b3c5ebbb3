// A task program at work on one cell, as a process of its own: what happens to it can't harm the suite or other cells.
// It is out of reach of the terminal's Ctrl-C (the suite passes it on once) and gets SIGTERM when the suite dies.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lra {

class CellProcess {
 public:
  // InputError when the program can't be started.
  CellProcess(const std::filesystem::path& program, const std::vector<std::string>& words);
  ~CellProcess();  // ends it where it still runs, and waits for it
  CellProcess(CellProcess&& other) noexcept;
  CellProcess& operator=(CellProcess&&) = delete;

  bool running();  // looks, does not wait
  void stop();     // SIGTERM: it saves and ends

  // When it no longer runs: its exit code, or -1 when a signal ended it.
  int exit_code() const;
  // What went wrong, one line: its own error, or the signal that ended it.
  std::string error() const;

 private:
  pid_t pid_ = -1;
  int stderr_ = -1;  // a file in memory
  int status_ = 0;
};

}  // namespace lra
