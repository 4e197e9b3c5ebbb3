#include "tasks/suite/cell_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "lib/util/check.h"
#include "lib/util/program.h"

namespace lra {

namespace {

// Between fork and exec; only calls that are safe there.
[[noreturn]] void become(pid_t parent, int stderr_file, char* const* argv) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it died before the line above
  // Until the program asks for them: what stops it before that is not lost, and it ends as one that was interrupted.
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  sigprocmask(SIG_SETMASK, &stops, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(stderr_file, STDERR_FILENO);
  execv(argv[0], argv);
  _exit(127);
}

std::string last_line(int file) {
  constexpr off_t kTail = 65536;
  const off_t size = ::lseek(file, 0, SEEK_END), begin = size > kTail ? size - kTail : 0;
  std::string text(static_cast<size_t>(size - begin), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), begin);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

CellProcess::CellProcess(const std::filesystem::path& program, const std::vector<std::string>& words) {
  const std::string path = program.string();
  if (::access(path.c_str(), X_OK) != 0) {
    throw InputError("cannot run {}: {}; the suite's task programs lie beside it", path, std::strerror(errno));
  }
  std::vector<std::string> copies{path};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  stderr_ = ::memfd_create("lra-suite-cell", MFD_CLOEXEC);
  if (stderr_ < 0) throw InputError("cannot run {}: no file for its errors: {}", path, std::strerror(errno));
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(parent, stderr_, argv.data());
  if (pid_ < 0) {
    const int reason = errno;
    ::close(stderr_);
    throw InputError("cannot run {}: {}", path, std::strerror(reason));
  }
}

CellProcess::CellProcess(CellProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), stderr_(std::exchange(other.stderr_, -1)), status_(other.status_) {}

CellProcess::~CellProcess() {
  if (running()) {
    stop();
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
  }
  if (stderr_ >= 0) ::close(stderr_);
}

bool CellProcess::running() {
  if (pid_ < 0) return false;
  const pid_t ended = waitpid(pid_, &status_, WNOHANG);
  if (ended == pid_ || (ended < 0 && errno == ECHILD)) pid_ = -1;
  return pid_ >= 0;
}

void CellProcess::stop() {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
}

int CellProcess::exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

std::string CellProcess::error() const {
  if (WIFSIGNALED(status_)) {
    const int signal = WTERMSIG(status_);
    return fmt::format("ended by signal {} ({}){}", signal, strsignal(signal),
                       signal == SIGKILL ? "; was memory short?" : "");
  }
  std::string line = one_line(last_line(stderr_));
  if (line.starts_with("lra-")) line.erase(0, line.find(": ") + 2);  // the program's name
  return line.empty() ? fmt::format("ended with exit code {}", exit_code()) : line;
}

}  // namespace lra
