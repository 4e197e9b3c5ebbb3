#include "datasets/pathfinder/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "datasets/pathfinder/folder.h"
#include "datasets/pathfinder/metadata.h"
#include "datasets/png.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra::pathfinder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMissing = "missing picture";

// The bytes of a picture; the reason why there are none is thrown alone, as the PNG reader does.
std::string picture_bytes(const fs::path& path) {
  constexpr off_t kLargest = off_t{16} << 20;
  const auto fail = [&](int error) {
    // What ails the machine is no fault of the picture, which would be left out.
    if (error == EMFILE || error == ENFILE || error == ENOMEM) {
      throw Error(1, fmt::format("{}: cannot be opened: {}", path.string(), std::generic_category().message(error)));
    }
    if (error == ENOENT || error == ENOTDIR) throw InputError("{}", kMissing);
    throw InputError("unreadable picture ({})", std::generic_category().message(error));
  };
  // Not blocking: the name may belong to a pipe.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(errno);
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } const closer{descriptor};
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(errno);
  if (!S_ISREG(status.st_mode)) throw InputError("no regular file");
  if (status.st_size > kLargest) throw InputError("larger than 16 MiB");
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count = ::read(descriptor, bytes.data() + got, bytes.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    if (count == 0) break;
    got += static_cast<size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

// The lists of a set, in their order.
struct Listing {
  std::vector<fs::path> files;
  struct Entry {
    std::string path;  // "imgs/0/sample_12.png"
    int32_t label;
    uint32_t file;  // in files
    int64_t row;
  };
  std::vector<Entry> entries;
  SkippedRows skipped;

  // "metadata/0.npy:17", below the set's folder.
  std::string place(uint32_t file, int64_t row) const {
    return fmt::format("metadata/{}:{}", files[file].filename().string(), row);
  }
};

Listing read_lists(const fs::path& folder, bool strict) {
  Listing listing;
  listing.files = metadata_files(folder);
  std::unordered_set<std::string> seen;
  for (uint32_t f = 0; f < listing.files.size(); ++f) {
    const fs::path& file = listing.files[f];
    Metadata metadata;
    const std::string bytes = read_file(file);
    try {
      metadata = parse_metadata(bytes);
    } catch (const InputError& error) {
      throw InputError("{}: {}", file.string(), error.what());
    }
    // A picture named again could stand in training and in test.
    std::vector<MetadataRow> rows;
    for (MetadataRow& row : metadata.rows) {
      if (seen.insert(row.path()).second) {
        rows.push_back(std::move(row));
      } else {
        metadata.bad.push_back({"picture named twice", fmt::format("{} was named before", row.path()), row.number});
      }
    }
    std::sort(metadata.bad.begin(), metadata.bad.end(),
              [](const BadMetadataRow& a, const BadMetadataRow& b) { return a.number < b.number; });
    for (const BadMetadataRow& bad : metadata.bad) {
      if (strict) throw InputError("{}:{}: {}", file.string(), bad.number, bad.detail);
      listing.skipped.add(bad.reason, listing.place(f, bad.number));
    }
    for (const MetadataRow& row : rows) listing.entries.push_back({row.path(), row.label, f, row.number});
  }
  return listing;
}

void decode(const fs::path& path, int size, std::span<uint8_t> pixels) {
  read_grey_png(picture_bytes(path), size, size, pixels);
}

// A picture that can't be used.
struct Fault {
  int64_t entry;
  std::string reason;
};

[[noreturn]] void throw_fault(const fs::path& folder, const Listing& listing, const Fault& fault, int size) {
  const Listing::Entry& entry = listing.entries[static_cast<size_t>(fault.entry)];
  if (fault.reason == kMissing) {
    throw InputError("{}:{}: names the picture {}, which is missing", listing.files[entry.file].string(), entry.row,
                     entry.path);
  }
  throw InputError("{}: {}; right is an 8-bit grey PNG of {} x {}", (folder / entry.path).string(), fault.reason, size,
                   size);
}

// Looks at every picture in the order of the splits, keeps the good ones.
class PictureReader {
 public:
  PictureReader(const fs::path& folder, const Listing& listing, const ReadOptions& options)
      : folder_(folder), listing_(listing), options_(options) {
    pixels_ = static_cast<size_t>(options.size) * static_cast<size_t>(options.size);
  }

  Pictures read() {
    std::vector<std::string> paths;
    paths.reserve(listing_.entries.size());
    for (const Listing::Entry& entry : listing_.entries) paths.push_back(entry.path);
    const std::vector<int64_t> order = split_order(paths);
    held_ = paths.size() * pixels_ <= static_cast<uint64_t>(options_.held);

    Pictures pictures{.size = options_.size, .skipped = listing_.skipped};
    if (held_) pictures.held.resize(paths.size() * pixels_);
    std::vector<std::string> reasons(paths.size());
    for_each(
        static_cast<int64_t>(paths.size()), options_.threads,
        [&](int64_t i) {
          const auto place = static_cast<size_t>(i);
          thread_local std::vector<uint8_t> scratch;
          if (!held_) scratch.resize(pixels_);
          const std::span<uint8_t> pixels =
              held_ ? std::span(pictures.held).subspan(place * pixels_, pixels_) : std::span(scratch);
          try {
            decode(folder_ / paths[static_cast<size_t>(order[place])], options_.size, pixels);
          } catch (const InputError& error) {
            reasons[place] = error.what();
          }
        },
        options_.progress);
    tell_faults(order, reasons, pictures);
    keep_good(order, reasons, pictures);
    return pictures;
  }

 private:
  void tell_faults(const std::vector<int64_t>& order, const std::vector<std::string>& reasons, Pictures& pictures) {
    std::vector<Fault> faults;
    for (size_t i = 0; i < order.size(); ++i) {
      if (!reasons[i].empty()) faults.push_back({order[i], reasons[i]});
    }
    std::sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) { return a.entry < b.entry; });
    if (options_.strict && !faults.empty()) throw_fault(folder_, listing_, faults[0], options_.size);
    for (const Fault& fault : faults) {
      const Listing::Entry& entry = listing_.entries[static_cast<size_t>(fault.entry)];
      pictures.skipped.add(fault.reason, fault.reason == kMissing ? listing_.place(entry.file, entry.row) : entry.path);
    }
  }

  void keep_good(const std::vector<int64_t>& order, const std::vector<std::string>& reasons, Pictures& pictures) {
    std::vector<std::string> good;
    for (size_t i = 0; i < order.size(); ++i) {
      if (!reasons[i].empty()) continue;
      const Listing::Entry& entry = listing_.entries[static_cast<size_t>(order[i])];
      const size_t place = pictures.labels.size();
      pictures.labels.push_back(entry.label);
      if (!held_) {
        good.push_back(entry.path);
      } else if (place != i) {
        const auto from = pictures.held.begin() + static_cast<std::ptrdiff_t>(i * pixels_);
        std::copy_n(from, pixels_, pictures.held.begin() + static_cast<std::ptrdiff_t>(place * pixels_));
      }
    }
    if (held_) {
      pictures.held.resize(pictures.labels.size() * pixels_);
      return;
    }
    pictures.load = [folder = folder_, paths = std::move(good), size = options_.size](int64_t index,
                                                                                      std::span<uint8_t> pixels) {
      const fs::path path = folder / paths[static_cast<size_t>(index)];
      try {
        decode(path, size, pixels);
      } catch (const InputError& error) {
        throw InputError("{}: changed while it was in use: {}", path.string(), error.what());
      }
    };
  }

  const fs::path& folder_;
  const Listing& listing_;
  const ReadOptions& options_;
  size_t pixels_ = 0;  // of a picture
  bool held_ = true;
};

}  // namespace

Splits read_folder(const fs::path& folder, const ReadOptions& options) {
  const Listing listing = read_lists(folder, options.strict);
  return cut_splits(PictureReader(folder, listing, options).read(), options, folder.string());
}

}  // namespace lra::pathfinder
