#include "datasets/random_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <vector>

#include "lib/util/check.h"

namespace lra {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

RandomFile::RandomFile(const std::filesystem::path& path) : path_(path) {
  do {
    // Without O_NONBLOCK a pipe would keep us waiting for its writer.
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw InputError("{}: cannot be opened: {}", path.string(), reason(errno));
  struct stat status {};
  const int error = ::fstat(descriptor_, &status) != 0 ? errno : 0;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw InputError("{}: cannot be read: {}", path.string(), error != 0 ? reason(error) : "not a regular file");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

RandomFile::~RandomFile() { ::close(descriptor_); }

void RandomFile::read(uint64_t offset, std::span<char> buffer) const {
  check(offset <= size_ && buffer.size() <= size_ - offset, "bytes {}+{} of {}", offset, buffer.size(), size_);
  size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got =
        ::pread(descriptor_, buffer.data() + done, buffer.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError("{}: cannot be read: {}", path_.string(), reason(errno));
    if (got == 0) {
      throw InputError("{}: became shorter while it was read: it had {} bytes and ends at {} now", path_.string(),
                       size_, offset + done);
    }
    done += static_cast<size_t>(got);
  }
}

uint64_t hash_file(const std::filesystem::path& path) {
  const RandomFile file(path);
  const std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state(XXH64_createState(), &XXH64_freeState);
  if (!state) throw std::bad_alloc();
  XXH64_reset(state.get(), 0);
  std::vector<char> piece(size_t{1} << 20);
  for (uint64_t at = 0; at < file.size();) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(piece.size(), file.size() - at));
    file.read(at, {piece.data(), bytes});
    XXH64_update(state.get(), piece.data(), bytes);
    at += bytes;
  }
  return XXH64_digest(state.get());
}

}  // namespace lra
