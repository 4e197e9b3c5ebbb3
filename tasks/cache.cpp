#include "tasks/cache.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra {

namespace fs = std::filesystem;

fs::path cache_folder() {
  // A relative XDG_CACHE_HOME is invalid and to be ignored, says the XDG specification.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && fs::path(cache).is_absolute()) return fs::path(cache) / "lra";
  const char* home = std::getenv("HOME");
  if (home && *home) return fs::path(home) / ".cache" / "lra";
  throw InputError("no place for generated data: set XDG_CACHE_HOME or HOME, or give --data");
}

void make_once(const fs::path& path, Log& log, const std::function<void()>& make) {
  if (fs::exists(path)) return;
  make_directories(path.parent_path());
  const fs::path lock_path = path.string() + ".lock";
  std::optional<FileLock> lock;
  for (bool said = false; !lock; said = true) {
    try {
      lock.emplace(lock_path, path.string());
    } catch (const UsageError&) {
      if (!said) log.line("waiting for another process that generates " + path.string());
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  if (!fs::exists(path)) make();
}

}  // namespace lra
