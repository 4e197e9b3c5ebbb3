#include "datasets/pathfinder/packed.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "datasets/little_endian.h"
#include "datasets/random_file.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra::pathfinder {
namespace {

constexpr std::string_view kMagic = "LRAPATH1";
constexpr size_t kHead = kMagic.size() + 4 + 4 + 8;
constexpr size_t kEntry = 8 + 1 + 2;  // without its path
constexpr size_t kLargestEntry = kEntry + std::numeric_limits<uint16_t>::max();
constexpr size_t kTail = 8 + 8;

uint64_t hash_pixels(std::span<const uint8_t> pixels) {
  return hash_bytes({reinterpret_cast<const char*>(pixels.data()), pixels.size()});
}

InputError damaged(const std::filesystem::path& path, const std::string& what) {
  return InputError("{}: {}; delete it to have it made again", path.string(), what);
}

// What the index says of a picture.
struct Entry {
  uint64_t hash;  // of its pixels
  int32_t label;
  uint64_t at;  // its number in the file
};

// Takes the index apart; the entries come in the order of the splits.
std::vector<Entry> parse_index(const std::filesystem::path& path, std::string_view index, uint64_t count) {
  if (count > index.size() / kEntry) throw damaged(path, "its counts are impossible");
  std::vector<Entry> entries;
  std::vector<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    if (index.size() < kEntry) throw damaged(path, "its index is impossible");
    const auto length = get<uint16_t>(index.data() + 9);
    const auto label = get<uint8_t>(index.data() + 8);
    if (label > 1 || length > index.size() - kEntry) throw damaged(path, "its index is impossible");
    entries.push_back({get<uint64_t>(index.data()), label, i});
    names.emplace_back(index.substr(kEntry, length));
    index.remove_prefix(kEntry + length);
  }
  if (!index.empty()) throw damaged(path, "its index is impossible");
  std::vector<Entry> ordered;
  ordered.reserve(entries.size());
  for (const int64_t at : split_order(names)) ordered.push_back(entries[static_cast<size_t>(at)]);
  return ordered;
}

}  // namespace

PackedWriter::PackedWriter(const std::filesystem::path& path, int size, int64_t count)
    : file_(path), head_(kMagic), pixels_(static_cast<size_t>(size) * static_cast<size_t>(size)), count_(count) {
  check(size > 0 && size <= 4096 && count > 0, "{} pictures of {} x {}", count, size, size);
  put(head_, static_cast<uint32_t>(size));
  put(head_, uint32_t{0});
  put(head_, static_cast<uint64_t>(count));
  file_.write(head_);
}

void PackedWriter::add(std::string_view path_in_set, int32_t label, std::span<const uint8_t> pixels) {
  check(added_ < count_, "more than {} pictures", count_);
  check(pixels.size() == pixels_ && (label == 0 || label == 1), "a picture of {} pixels with label {}", pixels.size(),
        label);
  check(path_in_set.size() <= std::numeric_limits<uint16_t>::max(), "a path of {} bytes", path_in_set.size());
  file_.write({reinterpret_cast<const char*>(pixels.data()), pixels.size()});
  put(index_, hash_pixels(pixels));
  put(index_, static_cast<uint8_t>(label));
  put(index_, static_cast<uint16_t>(path_in_set.size()));
  index_ += path_in_set;
  ++added_;
}

void PackedWriter::commit() {
  check(added_ == count_, "{} of {} pictures", added_, count_);
  std::string tail = index_;
  put(tail, static_cast<uint64_t>(index_.size()));
  put(tail, hash_bytes(head_ + tail));
  file_.write(tail);
  file_.commit();
}

Splits read_packed(const std::filesystem::path& path, const ReadOptions& options) {
  const auto file = std::make_shared<const RandomFile>(path);
  std::string head(std::min<uint64_t>(kHead, file->size()), '\0');
  file->read(0, head);
  if (!head.starts_with(kMagic)) throw damaged(path, "not a packed Pathfinder file");
  if (file->size() < kHead + kTail) throw damaged(path, "cut short");
  const auto size = get<uint32_t>(head.data() + kMagic.size());
  const auto count = get<uint64_t>(head.data() + kMagic.size() + 8);
  const uint64_t pixels = uint64_t{size} * size;
  const uint64_t body = file->size() - kHead - kTail;
  if (pixels == 0 || count == 0 || count > body / pixels) throw damaged(path, "cut short");
  std::string tail(kTail, '\0');
  file->read(file->size() - kTail, tail);
  const auto index_size = get<uint64_t>(tail.data());
  if (index_size != body - count * pixels || index_size / kLargestEntry > count) throw damaged(path, "cut short");
  std::string index(index_size, '\0');
  file->read(kHead + count * pixels, index);
  if (hash_bytes(head + index + tail.substr(0, 8)) != get<uint64_t>(tail.data() + 8)) {
    throw damaged(path, "its checksum is wrong");
  }
  if (size != static_cast<uint32_t>(options.size)) {
    throw damaged(path, fmt::format("its pictures are {} x {}, not {} x {}", size, size, options.size, options.size));
  }
  const auto entries = std::make_shared<const std::vector<Entry>>(parse_index(path, index, count));

  Pictures pictures{.size = options.size};
  for (const Entry& entry : *entries) pictures.labels.push_back(entry.label);
  const auto load = [path, file, entries, pixels](int64_t picture, std::span<uint8_t> out) {
    const Entry& entry = (*entries)[static_cast<size_t>(picture)];
    file->read(kHead + entry.at * pixels, {reinterpret_cast<char*>(out.data()), out.size()});
    if (hash_pixels(out) != entry.hash) throw damaged(path, "its checksum is wrong");
  };
  if (count * pixels <= static_cast<uint64_t>(options.held)) {
    pictures.held.resize(count * pixels);
    std::vector<int64_t> in_file_order(count);
    for (size_t i = 0; i < count; ++i) in_file_order[(*entries)[i].at] = static_cast<int64_t>(i);
    for_each(
        static_cast<int64_t>(count), options.threads,
        [&](int64_t i) {
          const int64_t picture = in_file_order[static_cast<size_t>(i)];
          load(picture, std::span(pictures.held).subspan(static_cast<uint64_t>(picture) * pixels, pixels));
        },
        options.progress);
  } else {
    pictures.load = load;
  }
  return cut_splits(std::move(pictures), options, path.string());
}

}  // namespace lra::pathfinder
