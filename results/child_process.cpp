#include "results/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>

#include "lib/util/check.h"

extern char** environ;

namespace lra {

namespace {

[[noreturn]] void fail(const char* what, int error) {
  throw InputError("{}: {}", what, std::generic_category().message(error));
}

// Both ends close themselves; children get only what is handed to them.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_end(size_t i) {
    if (ends_[i] >= 0) ::close(ends_[i]);
    ends_[i] = -1;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

// The program's process, or the error of starting it in `error`.
pid_t start(const std::vector<std::string>& arguments, const Pipe& in, const Pipe& out, const Pipe& err, int& error) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end(), 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), 2);
  posix_spawnattr_t attributes;  // our programs ignore SIGPIPE; the child shall not inherit that
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// False at the end of the stream.
bool take(int descriptor, std::string& text) {
  char buffer[1 << 16];
  const ssize_t n = ::read(descriptor, buffer, sizeof buffer);
  if (n > 0) text.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

// Writes and reads as either side is ready, so that no full pipe stops both. False: out of time.
bool converse(Pipe& in, Pipe& out, Pipe& err, const std::string& input, int seconds, ChildResult& result) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  ::fcntl(in.write_end(), F_SETFL, O_NONBLOCK);
  size_t written = 0;
  if (input.empty()) in.close_end(1);
  while (out.read_end() >= 0 || err.read_end() >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting[3] = {{in.write_end(), POLLOUT, 0}, {out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}};
    if (::poll(waiting, 3, static_cast<int>(left)) < 0 && errno != EINTR) fail("cannot wait for a program", errno);
    if (waiting[0].revents != 0) {
      const ssize_t n = ::write(in.write_end(), input.data() + written, input.size() - written);
      if (n > 0) written += static_cast<size_t>(n);
      const bool again = n < 0 && (errno == EINTR || errno == EAGAIN);
      if (written == input.size() || (n <= 0 && !again)) in.close_end(1);
    }
    if (waiting[1].revents != 0 && !take(out.read_end(), result.output)) out.close_end(0);
    if (waiting[2].revents != 0 && !take(err.read_end(), result.errors)) err.close_end(0);
  }
  return true;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments, const std::string& input, int seconds) {
  Pipe in, out, err;
  int error = 0;
  const pid_t child = start(arguments, in, out, err, error);
  ChildResult result;
  if (error == ENOENT) return result;
  if (error != 0) fail(("cannot run " + arguments[0]).c_str(), error);
  result.found = true;
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  const bool in_time = converse(in, out, err, input, seconds, result);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (in_time && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (!in_time) result.errors = fmt::format("no answer within {} seconds", seconds);
  return result;
}

}  // namespace lra
