// SIGINT and SIGTERM. While a StopSignals lives, the first one only raises a flag, so that work in progress can be
// saved; a second one ends the process at once (a second SIGTERM within two seconds of the first counts as the same:
// schedulers send one to a script, which passes it on, and one to its programs). Outside of it either ends the process
// at once. Exit code 130 in each case. Call install_signal_handlers before the program has started a thread.
#pragma once

namespace lra {

// From here on SIGINT and SIGTERM end the process with 130 at once (nothing is left to be saved).
void install_signal_handlers();

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool raised() const;
  int signal() const;  // the one that was raised, 0 = none
};

constexpr int kInterruptedExitCode = 130;

}  // namespace lra
