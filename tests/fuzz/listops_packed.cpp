// Packed ListOps files of the cache. The checksum at the end would stop nearly every change: each input is read as it
// is and once more with its right checksum behind it.
#include "datasets/listops/packed.h"
#include "datasets/listops/tokens.h"
#include "lib/util/files.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

void read_whole(const std::filesystem::path& path) {
  const listops::Splits splits = listops::read_packed(path, {.max_length = 0}, {.max_length = 3}, {.limit = 1});
  const SplitBounds bounds{.vocabulary = listops::kClose + 1, .classes = listops::kClasses};
  require_split(*splits.train, bounds);
  require_split(*splits.validation, bounds);
  require_split(*splits.test, bounds);
  require(splits.test->size() <= 1, "more rows than the limit");
}

}  // namespace

void listops_packed(Bytes bytes) {
  accepts([&] { read_whole(scratch_file("packed", text_of(bytes))); });
  std::string summed(text_of(bytes));
  const uint64_t hash = hash_bytes(summed);
  for (int i = 0; i < 8; ++i) summed += static_cast<char>(hash >> (8 * i));
  accepts([&] { read_whole(scratch_file("packed", summed)); });
}

}  // namespace lra::fuzz
