// Errors as users meet them: one line that names the file, line, option or value at fault and what would be right.
// The kind decides the exit code of a program (docs/interfaces: 2 = the command line or recipe, 1 = files, data,
// devices).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lra {

class Error : public std::runtime_error {
 public:
  Error(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// Decidable from the command line and recipe alone.
class UsageError : public Error {
 public:
  template <class... Args>
  explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
      : Error(2, fmt::format(format, std::forward<Args>(args)...)) {}
};

// Found on touching files, data or devices.
class InputError : public Error {
 public:
  template <class... Args>
  explicit InputError(fmt::format_string<Args...> format, Args&&... args)
      : Error(1, fmt::format(format, std::forward<Args>(args)...)) {}
};

// Bytes of a file inside an error line: no control characters, no broken UTF-8, not a page of it.
std::string shown(std::string_view bytes, size_t longest = 40);

// A broken promise between parts of the program: a bug, never the user's fault.
template <class... Args>
void check(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw std::logic_error("internal error: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lra
