// Archives, and the two tasks that are read out of one: members, reviews of Text, batches of Image. A tar header has a
// checksum that would stop nearly every change, so that each input is read as it is and once more with right ones.
#include "datasets/archive.h"

#include "datasets/image/reader.h"
#include "datasets/text/reader.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

constexpr size_t kBlock = 512;  // of a tar archive

std::string with_checksums(std::string bytes) {
  constexpr size_t kField = 148, kFieldSize = 8, kMagic = 257;
  for (size_t block = 0; block + kBlock <= bytes.size(); block += kBlock) {
    if (bytes.compare(block + kMagic, 5, "ustar") != 0) continue;
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      const bool inside = i >= kField && i < kField + kFieldSize;
      sum += inside ? ' ' : static_cast<unsigned char>(bytes[block + i]);
    }
    char text[kFieldSize + 1];
    std::snprintf(text, sizeof text, "%06o", sum);  // and a zero and a blank
    text[kFieldSize - 1] = ' ';
    bytes.replace(block + kField, kFieldSize, text, kFieldSize);
  }
  return bytes;
}

void read_members(const std::filesystem::path& path) {
  ArchiveReader archive(path);
  while (archive.next()) {
    require(!archive.name().starts_with("./"), "a name begins with ./");
    if (archive.size() % 2 == 0) {
      require(archive.read_all(1 << 16).size() == static_cast<size_t>(archive.size()), "a member is not whole");
    } else {
      char piece[100];
      while (archive.read(piece) > 0) continue;
    }
  }
}

void read_all(const std::filesystem::path& path) {
  if (!accepts([&] { read_members(path); })) return;
  for (const bool strict : {false, true}) {
    accepts([&] {
      const text::Splits splits = text::read_set(path, {.max_length = 5, .strict = strict});
      const SplitBounds bounds{.vocabulary = 257, .classes = 2, .max_length = 5};
      for (const auto* split : {&splits.train, &splits.validation, &splits.test}) require_split(**split, bounds);
      require(splits.train->size() > 0, "an empty training split is accepted");
      require(!strict || splits.train->skipped().empty(), "strictly, files are left out");
    });
  }
  accepts([&] {
    const image::Splits splits = image::read_set(path, {.max_length = 0});
    const SplitBounds bounds{.least = 0, .vocabulary = 256, .classes = image::kClasses};
    for (const auto* split : {&splits.train, &splits.validation, &splits.test}) require_split(**split, bounds);
  });
}

}  // namespace

void archive(Bytes bytes) {
  read_all(scratch_file("archive.tar", text_of(bytes)));
  read_all(scratch_file("archive.tar", with_checksums(std::string(text_of(bytes)))));
}

}  // namespace lra::fuzz
