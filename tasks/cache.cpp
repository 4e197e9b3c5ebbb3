#include "tasks/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra {

namespace fs = std::filesystem;

namespace {

// An exclusive lock that dies with the process, and whose file goes with it.
class OnceLock {
 public:
  // Nothing when another process holds it. InputError when the file can't be made.
  static std::optional<OnceLock> take(const fs::path& path) {
    OnceLock lock(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (lock.descriptor_ < 0) throw lock.failed("written", errno);
    while (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      lock.close();
      if (error == EWOULDBLOCK) return std::nullopt;
      throw lock.failed("locked", error);
    }
    // Its last holder may have taken the file away between our two calls.
    struct stat ours {
    }, named{};
    if (::fstat(lock.descriptor_, &ours) != 0 || ::stat(path.c_str(), &named) != 0 || ours.st_ino != named.st_ino) {
      lock.close();
      return std::nullopt;
    }
    return lock;
  }

  OnceLock(OnceLock&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  OnceLock& operator=(OnceLock&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OnceLock() {
    if (descriptor_ < 0) return;
    ::unlink(path_.c_str());  // before the lock goes: nobody else can hold it
    ::close(descriptor_);
  }

 private:
  OnceLock(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void close() { ::close(std::exchange(descriptor_, -1)); }
  InputError failed(const char* action, int error) const {
    return InputError("{}: cannot be {}: {}", path_.string(), action, std::generic_category().message(error));
  }

  fs::path path_;
  int descriptor_;
};

}  // namespace

fs::path cache_folder() {
  // A relative XDG_CACHE_HOME is invalid and to be ignored, says the XDG specification.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && fs::path(cache).is_absolute()) return fs::path(cache) / "lra";
  const char* home = std::getenv("HOME");
  if (home && *home) return fs::path(home) / ".cache" / "lra";
  throw InputError("no place for the cache folder: set XDG_CACHE_HOME or HOME, or give --data");
}

void make_once(const fs::path& path, Log& log, const std::function<void()>& make) {
  std::error_code ignored;  // where it can't be looked for it can't be made either, and that says why
  if (fs::exists(path, ignored)) return;
  make_directories(path.parent_path());
  const fs::path lock_path = path.string() + ".lock";
  std::optional<OnceLock> lock = OnceLock::take(lock_path);
  if (!lock) log.line("waiting for another process that makes " + path.string());
  while (!lock) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    lock = OnceLock::take(lock_path);
  }
  if (!fs::exists(path, ignored)) make();
}

}  // namespace lra
