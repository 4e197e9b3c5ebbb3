// Files that are whole or not there. POSIX calls are used directly because the standard streams neither report why a
// write failed nor flush to disk.
#include "lib/util/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/util/check.h"

namespace lra {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

void close_quietly(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// Writes all of `bytes`; returns how many went out. Fewer than asked: errno says why.
size_t write_all(int descriptor, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

// A new file beside `path`, named after this process and a running number so that no two writers share it.
int open_temporary(const std::filesystem::path& path, std::filesystem::path& temporary) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0;; ++attempt) {
    temporary = path;
    temporary += fmt::format(".tmp-{}-{}", ::getpid(), counter++);
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    // A leftover of a killed process that had the same number: take the next name.
    if (descriptor < 0 && errno == EEXIST && attempt < 1000) continue;
    return descriptor;
  }
}

// A rename is on disk only when its folder is. File systems that cannot flush folders say EINVAL; theirs is done.
void sync_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // a folder that can be written but not read
  const bool failed = ::fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP;
  const int error = errno;
  close_quietly(descriptor);
  if (failed) throw InputError("cannot write {}: {}", folder.string(), reason(error));
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw InputError("cannot read {}: {}", path.string(), reason(errno));
  std::string bytes;
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  // One byte more than the size, so that the read that finds the end needs no further growth.
  bytes.resize(known ? static_cast<size_t>(status.st_size) + 1 : size_t{1} << 16);
  size_t size = 0;
  for (;;) {
    if (size == bytes.size()) bytes.resize(2 * bytes.size());
    const ssize_t n = ::read(descriptor, bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close_quietly(descriptor);
      throw InputError("cannot read {}: {}", path.string(), reason(error));
    }
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  close_quietly(descriptor);
  bytes.resize(size);
  return bytes;
}

void write_file_atomic(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::path temporary;
  int descriptor = open_temporary(path, temporary);
  if (descriptor < 0) throw InputError("cannot write {}: {}", path.string(), reason(errno));
  const auto fail = [&](int error) {
    close_quietly(descriptor);
    ::unlink(temporary.c_str());
    throw InputError("cannot write {}: {}", path.string(), reason(error));
  };
  if (write_all(descriptor, bytes) != bytes.size()) fail(errno);
  if (::fsync(descriptor) != 0) fail(errno);
  if (::close(std::exchange(descriptor, -1)) != 0) fail(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail(errno);
  sync_folder(path);
}

void remove_temporaries(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.find(".tmp-") != std::string::npos) std::filesystem::remove(entry->path(), ignored);
  }
}

void make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw InputError("cannot create folder {}: {}", path.string(), error.message());
  if (!std::filesystem::is_directory(path, error)) {
    throw InputError("cannot create folder {}: {}", path.string(), reason(ENOTDIR));
  }
}

uint64_t hash_bytes(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

std::string hex64(uint64_t value) { return fmt::format("{:016x}", value); }

LineWriter::LineWriter(const std::filesystem::path& path, bool append) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
  if (descriptor_ < 0) throw InputError("cannot write {}: {}", path.string(), reason(errno));
}

LineWriter::~LineWriter() { close_quietly(descriptor_); }

LineWriter::LineWriter(LineWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

LineWriter& LineWriter::operator=(LineWriter&& other) noexcept {
  if (this != &other) {
    close_quietly(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

void LineWriter::write(std::string_view line) {
  check(descriptor_ >= 0, "line written to a file that is not open");
  std::string whole(line);
  whole += '\n';
  const size_t done = write_all(descriptor_, whole);
  if (done == whole.size()) return;
  const int error = errno;
  // A half line would be read as a damaged one: take it back.
  struct stat status {};
  if (done > 0 && ::fstat(descriptor_, &status) == 0 && status.st_size >= static_cast<off_t>(done)) {
    if (::ftruncate(descriptor_, status.st_size - static_cast<off_t>(done)) != 0) {
      throw InputError("cannot write {}: {}; its last line is incomplete", path_.string(), reason(error));
    }
  }
  throw InputError("cannot write {}: {}", path_.string(), reason(error));
}

FileLock::FileLock(const std::filesystem::path& path, const std::string& what) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw InputError("cannot write {}: {}", path.string(), reason(errno));
  constexpr int kTries = 20;
  for (int tries = 1; ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno == EINTR) continue;
    const int error = errno;
    if (error == EWOULDBLOCK && tries < kTries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    close_quietly(descriptor_);
    if (error == EWOULDBLOCK) throw UsageError("{} is in use by another process (it holds {})", what, path.string());
    throw InputError("cannot lock {}: {}", path.string(), reason(error));
  }
}

FileLock::~FileLock() { close_quietly(descriptor_); }

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    close_quietly(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

}  // namespace lra
