// Runs a program with text on its standard input and takes what it prints. No shell has a part in it.
#pragma once

#include <string>
#include <vector>

namespace lra {

struct ChildResult {
  bool found = false;  // false: there is no such program
  int exit_code = -1;  // -1: ended by a signal or by the time limit
  std::string output, errors;
};

// `arguments[0]` is looked for in PATH. InputError when the system refuses pipes or processes.
ChildResult run_child(const std::vector<std::string>& arguments, const std::string& input, int seconds);

}  // namespace lra
