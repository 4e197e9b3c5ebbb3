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
#include <optional>
#include <system_error>
#include <thread>

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

using Clock = std::chrono::steady_clock;

// A started program, which does not outlive this.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    wait(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Its exit code, -1 after a signal; nothing where it has not ended by then.
  std::optional<int> ended_by(Clock::time_point end) {
    while (!wait(WNOHANG)) {
      if (Clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  bool wait(int options) {
    pid_t ended = 0;
    do {
      ended = ::waitpid(id_, &status_, options);
    } while (ended < 0 && errno == EINTR);
    if (ended != 0) id_ = -1;
    return ended != 0;
  }

  pid_t id_;
  int status_ = -1;
};

// Writes and reads as either side is ready, so that no full pipe stops both. False: out of time.
bool converse(Pipe& in, Pipe& out, Pipe& err, const std::string& input, Clock::time_point end, ChildResult& result) {
  ::fcntl(in.write_end(), F_SETFL, O_NONBLOCK);
  size_t written = 0;
  if (input.empty()) in.close_end(1);
  while (out.read_end() >= 0 || err.read_end() >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
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
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  Pipe in, out, err;
  int error = 0;
  const pid_t id = start(arguments, in, out, err, error);
  ChildResult result;
  if (error == ENOENT || error == ENOTDIR) return result;
  result.found = true;
  if (error != 0) {
    result.refused = std::generic_category().message(error);
    return result;
  }
  Child child(id);
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  const std::optional<int> code =
      converse(in, out, err, input, end, result) ? child.ended_by(end) : std::optional<int>();
  result.out_of_time = !code;
  result.exit_code = code.value_or(-1);
  if (!code) result.errors = fmt::format("no answer within {} seconds", seconds);
  return result;
}

}  // namespace lra
