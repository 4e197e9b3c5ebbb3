// Runs a program with text on its standard input and takes what it prints. No shell has a part in it.
#pragma once

#include <string>
#include <vector>

namespace lra {

struct ChildResult {
  bool found = false;        // false: there is no such program
  std::string refused;       // why the system does not start it
  bool out_of_time = false;  // it was killed
  int exit_code = -1;        // -1: ended by a signal or by the time limit
  std::string output, errors;
};

// `arguments[0]` is looked for in PATH. When this returns or throws the program is gone, whatever it did: it is killed
// at the end of its time, even after it closed its pipes. InputError when the system refuses pipes.
ChildResult run_child(const std::vector<std::string>& arguments, const std::string& input, int seconds);

}  // namespace lra
