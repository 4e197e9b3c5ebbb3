// The outermost frame of a program: turns every error into one line on stderr and an exit code, so that no user ever
// meets an uncaught exception. Exit codes: 0 done, 1 files, data or devices, 2 the command line, 130 interrupted.
#pragma once

#include <functional>
#include <string>

namespace lra {

// Runs `body` and returns its exit code. lra::Error ends with its own code, cxxopts' exceptions with 2, anything else
// with 1; each prints "name: message". Standard output is flushed: a write error there (closed pipe, full disk) ends
// with 1. SIGPIPE is ignored, so that a closed pipe is such an error and not a sudden end. With glibc, freed blocks
// of a megabyte and more go back to the system at once.
int run_program(const std::string& name, const std::function<int()>& body);

// Line breaks, control characters and marks that turn the direction of writing become blanks: an error stays one line
// whatever a file or option holds.
std::string one_line(std::string text);

}  // namespace lra
