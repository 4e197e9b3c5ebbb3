#include "lib/util/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "lib/util/check.h"
#include "lib/util/program.h"

namespace lra {

namespace {

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Cuts UTF-8 text to `columns` characters, never inside one.
std::string_view cut(std::string_view text, size_t columns) {
  size_t seen = 0, i = 0;
  for (; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && seen++ == columns) break;
  }
  return text.substr(0, i);
}

}  // namespace

int terminal_columns() {
  if (!isatty(STDERR_FILENO)) return 0;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

Log::~Log() { clear_status(); }

void Log::open(const std::filesystem::path& path, bool append) {
  std::lock_guard lock(mutex_);
  file_ = std::make_unique<LineWriter>(path, append);
  for (const std::string& line : early_) file_->write(line);
  early_.clear();
}

void Log::line(std::string_view text) {
  std::lock_guard lock(mutex_);
  const std::string status = status_;
  clear_status();
  if (!quiet_) put(std::string(text) + "\n");
  if (file_) {
    file_->write(text);
  } else {
    early_.emplace_back(text);
  }
  if (!status.empty()) {
    put(status);
    status_ = status;
  }
}

void Log::file_line(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!file_) return;
  try {
    file_->write(one_line(std::string(text)));
  } catch (const Error&) {
    // The disk may be full: that is what the line is about.
  }
}

void Log::status(std::string_view text) {
  if (quiet_) return;
  std::lock_guard lock(mutex_);
  const int columns = terminal_columns();
  const std::string_view shown = columns > 0 ? cut(text, static_cast<size_t>(columns - 1)) : text;
  if (shown == status_) return;
  clear_status();
  put(shown);
  status_ = shown;
}

void Log::clear_status() {
  if (status_.empty()) return;
  put("\r\x1b[K");
  status_.clear();
}

}  // namespace lra
