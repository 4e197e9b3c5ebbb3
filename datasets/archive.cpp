#include "datasets/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "lib/util/check.h"

namespace lra {
namespace {

struct archive* get(const std::unique_ptr<void, void (*)(void*)>& pointer) {
  return static_cast<struct archive*>(pointer.get());
}

}  // namespace

bool is_archive_name(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  for (const std::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) return true;
  }
  return false;
}

ArchiveReader::ArchiveReader(const std::filesystem::path& path)
    : path_(path),
      file_(std::fopen(path.c_str(), "rbe"), &std::fclose),
      archive_(nullptr, [](void* a) { archive_read_free(static_cast<struct archive*>(a)); }) {
  if (!file_) throw InputError("{}: cannot be read: {}", path.string(), std::strerror(errno));
  archive_.reset(archive_read_new());
  if (!archive_) throw std::bad_alloc();
  // By name: "all" holds filters that start other programs.
  archive_read_support_filter_gzip(get(archive_));
  archive_read_support_filter_bzip2(get(archive_));
  archive_read_support_filter_xz(get(archive_));
  archive_read_support_filter_zstd(get(archive_));
  archive_read_support_format_tar(get(archive_));
  if (archive_read_open_FILE(get(archive_), file_.get()) != ARCHIVE_OK) fail();
}

ArchiveReader::~ArchiveReader() = default;

void ArchiveReader::fail() const {
  const char* text = archive_error_string(get(archive_));
  std::string reason = text ? text : "damaged or cut short";
  // One line, whatever the library says.
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  throw InputError("{}: cannot be read as a tar archive{}: {}", path_.string(),
                   name_.empty() ? "" : fmt::format(", at {}", name_), reason);
}

bool ArchiveReader::next() {
  for (;;) {
    struct archive_entry* entry = nullptr;
    const int status = archive_read_next_header(get(archive_), &entry);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail();
    const auto type = archive_entry_filetype(entry);
    link_ = archive_entry_hardlink(entry) != nullptr || type == AE_IFLNK;
    if (type != AE_IFREG && !link_) continue;
    const char* name = archive_entry_pathname(entry);
    if (!name) name = archive_entry_pathname_utf8(entry);  // not spellable in the user's locale
    name_ = name ? name : "";
    while (name_.starts_with("./")) name_.erase(0, 2);
    size_ = archive_entry_size(entry);
    block_ = {};
    given_ = 0;
    if (archive_entry_sparse_count(entry) > 0) refuse_holes();
    return true;
  }
}

size_t ArchiveReader::read(std::span<char> buffer) {
  if (link_) {
    throw InputError(
        "{}: {} is a link to another file; pack the files themselves (tar --dereference "
        "--hard-dereference)",
        path_.string(), name_);
  }
  while (block_.empty()) {
    const void* data = nullptr;
    size_t bytes = 0;
    la_int64_t place = given_;
    const int status = archive_read_data_block(get(archive_), &data, &bytes, &place);
    if (status == ARCHIVE_EOF) {
      if (given_ < size_) refuse_holes();
      return 0;
    }
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail();
    if (place != given_ && bytes > 0) refuse_holes();
    block_ = {static_cast<const char*>(data), bytes};
  }
  const size_t got = std::min(buffer.size(), block_.size());
  std::copy_n(block_.begin(), got, buffer.begin());
  block_ = block_.subspan(got);
  given_ += static_cast<int64_t>(got);
  return got;
}

// A few bytes can stand for any number of zeros.
void ArchiveReader::refuse_holes() const {
  throw InputError("{}: {} is stored as a file with holes; pack it without tar's --sparse", path_.string(), name_);
}

std::string ArchiveReader::read_all(int64_t most) {
  if (link_) read({});  // throws
  if (size_ < 0 || size_ > most) {
    throw InputError("{}: {} is {} bytes long, more than the {} that it may be", path_.string(), name_, size_, most);
  }
  std::string bytes(static_cast<size_t>(size_), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t got = read({bytes.data() + at, bytes.size() - at});
    if (got == 0) {
      throw InputError("{}: {} is cut short at {} of {} bytes", path_.string(), name_, at, size_);
    }
    at += got;
  }
  return bytes;
}

}  // namespace lra
