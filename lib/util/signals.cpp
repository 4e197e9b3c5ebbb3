#include "lib/util/signals.h"

#include <unistd.h>

#include <csignal>

#include "lib/util/check.h"

namespace lra {

namespace {

volatile std::sig_atomic_t g_graceful = 0;
volatile std::sig_atomic_t g_raised = 0;

extern "C" void on_stop_signal(int signal) {
  if (!g_graceful || g_raised) _exit(kInterruptedExitCode);
  g_raised = signal;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  // A signal that was ignored from outside (nohup, a background job of sh) stays ignored.
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction old = {};
    sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

StopSignals::StopSignals() {
  check(!g_graceful, "two StopSignals at once");
  g_raised = 0;
  g_graceful = 1;
}

StopSignals::~StopSignals() { g_graceful = 0; }

bool StopSignals::raised() const { return g_raised != 0; }

int StopSignals::signal() const { return g_raised; }

}  // namespace lra
