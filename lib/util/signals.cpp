#include "lib/util/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "lib/util/check.h"

namespace lra {

namespace {

std::atomic<bool> g_graceful = false;
std::atomic<int> g_raised = 0;

// Called on one thread.
void on_stop_signal(int signal) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point first;
  if (g_graceful && g_raised == SIGTERM && signal == SIGTERM && Clock::now() - first < std::chrono::seconds(2)) return;
  if (!g_graceful || g_raised != 0) _exit(kInterruptedExitCode);
  first = Clock::now();
  g_raised = signal;
}

}  // namespace

// Signals are blocked in every thread and taken by one thread that does nothing else. A handler would run on the stack
// of whatever thread is at work, and the matrix kernels that oneDNN generates keep live data below their stack pointer:
// measured with oneDNN 2.6, one run in three that was stopped by a handler ended with a corrupted heap.
void install_signal_handlers() {
  static bool installed = false;
  if (installed) return;
  installed = true;
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction old = {};
    sigaction(signal, nullptr, &old);
    // A signal that was ignored from outside (nohup, a background job of sh) stays ignored.
    if (old.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set] {
    for (;;) {
      int signal = 0;
      if (sigwait(&set, &signal) == 0) on_stop_signal(signal);
    }
  }).detach();
}

StopSignals::StopSignals() {
  check(!g_graceful, "two StopSignals at once");
  g_raised = 0;
  g_graceful = true;
}

StopSignals::~StopSignals() { g_graceful = false; }

bool StopSignals::raised() const { return g_raised != 0; }

int StopSignals::signal() const { return g_raised; }

}  // namespace lra
