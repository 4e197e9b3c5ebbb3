#include "datasets/file_stream.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "lib/util/check.h"

namespace lra {
namespace {

constexpr size_t kBlock = size_t{256} << 10;

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, size_t longest) : path_(path), longest_(longest) {
  do {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw InputError("{}: cannot be opened: {}", path.string(), reason(errno));
  buffer_.resize(kBlock);
}

LineReader::~LineReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Makes room behind the bytes that are left and reads once; false at the end of the file.
bool LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  ssize_t got = 0;
  do {
    got = ::read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw InputError("{}: cannot be read: {}", path_.string(), reason(errno));
  end_ += static_cast<size_t>(got);
  return got > 0;
}

bool LineReader::next() {
  line_ = {};
  too_long_ = false;
  size_t searched = 0;  // bytes from begin_ on known to hold no LF
  for (;;) {
    const char* start = buffer_.data() + begin_;
    const auto* newline = static_cast<const char*>(std::memchr(start + searched, '\n', end_ - begin_ - searched));
    if (newline != nullptr || at_end_) {
      size_t length = newline != nullptr ? static_cast<size_t>(newline - start) : end_ - begin_;
      if (newline == nullptr && length == 0 && !too_long_) return false;
      begin_ += length + (newline != nullptr ? 1 : 0);
      if (length > longest_) too_long_ = true;
      if (!too_long_) {
        if (length > 0 && start[length - 1] == '\r') --length;
        line_ = {start, length};
      }
      ++number_;
      return true;
    }
    searched = end_ - begin_;
    if (searched > longest_) {  // forget the line so far, but not that it was there
      too_long_ = true;
      begin_ = end_;
      searched = 0;
    }
    if (!fill()) at_end_ = true;
  }
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), partial_(path.string() + ".partial") {
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("created", errno);
  // The lock dies with its process, so a partial file left by a killed one is simply taken over.
  struct stat opened {
  }, named{};
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 || ::fstat(descriptor_, &opened) != 0 ||
      ::stat(partial_.c_str(), &named) != 0 || opened.st_ino != named.st_ino) {
    ::close(descriptor_);
    throw InputError("{}: another process is writing it", path_.string());
  }
  if (::ftruncate(descriptor_, 0) != 0) {
    const int error = errno;
    ::close(descriptor_);
    fail("emptied", error);
  }
  buffer_.reserve(kBlock);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::unlink(partial_.c_str());
  ::close(descriptor_);
}

void AtomicFile::fail(const char* action, int error) const {
  throw InputError("{}: cannot be {}: {}", path_.string(), action, reason(error));
}

void AtomicFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBlock) {
    write_out(buffer_);
    buffer_.clear();
  }
  if (bytes.size() >= kBlock) {
    write_out(bytes);
  } else {
    buffer_.append(bytes);
  }
}

void AtomicFile::write_out(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("written", errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void AtomicFile::flush() {
  write_out(buffer_);
  buffer_.clear();
  if (::fsync(descriptor_) != 0) fail("written", errno);
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, "{} committed twice", path_.string());
  flush();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail("put in place", errno);
  ::close(descriptor_);
  descriptor_ = -1;
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {  // the new name reaches the disk too; some file systems offer no such call
    ::fsync(directory);
    ::close(directory);
  }
}

}  // namespace lra
