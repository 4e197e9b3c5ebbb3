// Packed Pathfinder files of the cache, of 2 x 2 pixels: as they are, and with the right checksum of head and index
// behind them.
#include "datasets/pathfinder/packed.h"
#include "lib/util/files.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

constexpr size_t kHead = 24, kNumber = 8;

// `bytes` end with the length of the index.
std::string with_checksum(std::string bytes) {
  if (bytes.size() < kHead + kNumber) return bytes;
  const size_t end = bytes.size() - kNumber;
  uint64_t index = 0;
  for (size_t i = kNumber; i-- > 0;) index = index << 8 | static_cast<unsigned char>(bytes[end + i]);
  if (index > end - kHead) return bytes;
  const uint64_t hash = hash_bytes(bytes.substr(0, kHead) + bytes.substr(end - index));
  for (size_t i = 0; i < kNumber; ++i) bytes += static_cast<char>(hash >> (8 * i));
  return bytes;
}

void read_whole(const std::filesystem::path& path) {
  const SplitBounds bounds{.least = 0, .vocabulary = 256, .classes = 2, .max_length = 4};
  uint64_t hash = 0;
  const bool held = accepts([&] {
    const pathfinder::Splits splits = pathfinder::read_packed(path, {.size = 2, .threads = 1});
    for (const auto* split : {&splits.train, &splits.validation, &splits.test}) require_split(**split, bounds);
    hash = split_hash(*splits.train);
  });
  const bool on_disk = accepts([&] {
    const pathfinder::Splits splits = pathfinder::read_packed(path, {.size = 2, .threads = 1, .held = 0});
    for (const auto* split : {&splits.train, &splits.validation, &splits.test}) require_split(**split, bounds);
    require(held && split_hash(*splits.train) == hash, "held pictures differ from those on disk");
  });
  require(held == on_disk, "pictures that are held and those on disk are not accepted alike");
}

}  // namespace

void pathfinder_packed(Bytes bytes) {
  read_whole(scratch_file("pictures", text_of(bytes)));
  read_whole(scratch_file("pictures", with_checksum(std::string(text_of(bytes)))));
}

}  // namespace lra::fuzz
