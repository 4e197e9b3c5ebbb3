// One file for all pictures: what is written is read, and damage anywhere is found.
#include <gtest/gtest.h>

#include <algorithm>

#include "datasets/pathfinder/packed.h"
#include "datasets/pathfinder/reader.h"
#include "datasets/png.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::pathfinder {
namespace {

namespace fs = std::filesystem;

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<uint8_t> pixels_of(int k, int size) {
  std::vector<uint8_t> pixels(static_cast<size_t>(size) * static_cast<size_t>(size));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 + static_cast<size_t>(k));
  return pixels;
}

std::string name_of(int k) { return fmt::format("imgs/0/sample_{}.png", k); }

void write_pack(const fs::path& path, int count, int size) {
  PackedWriter writer(path, size, count);
  for (int k = 0; k < count; ++k) writer.add(name_of(k), k % 2, pixels_of(k, size));
  writer.commit();
}

TEST(PathfinderPacked, GivesTheSplitsOfTheFolder) {
  TemporaryFolder folder;
  std::string rows;
  for (int k = 0; k < 40; ++k) {
    put_file(folder / name_of(k), write_grey_png({.width = 32, .height = 32, .pixels = pixels_of(k, 32)}));
    rows += fmt::format("imgs/0 sample_{}.png {} {}\n", k, k, k % 2);
  }
  put_file(folder / "metadata/0.npy", rows);
  write_pack(folder / "pack.bin", 40, 32);
  for (const int64_t held : {int64_t{0}, int64_t{1} << 20}) {
    const ReadOptions options{.shifted = true, .max_length = 900, .limit_train = 20, .threads = 3, .held = held};
    const Splits files = read_folder(folder.path(), options), pack = read_packed(folder / "pack.bin", options);
    EXPECT_EQ(pack.train->size(), 20);
    EXPECT_EQ(pack.validation->size(), 4);
    EXPECT_EQ(pack.test->size(), 4);
    EXPECT_EQ(split_hash(*pack.train), split_hash(*files.train));
    EXPECT_EQ(split_hash(*pack.validation), split_hash(*files.validation));
    EXPECT_EQ(split_hash(*pack.test), split_hash(*files.test));
  }
}

TEST(PathfinderPacked, HoldsEverySize) {
  TemporaryFolder folder;
  for (const int size : {32, 64, 128, 256}) {
    write_pack(folder / "pack.bin", 3, size);
    const Splits pack = read_packed(folder / "pack.bin", {.size = size});
    ASSERT_EQ(pack.train->size(), 2);
    EXPECT_EQ(pack.train->get(0).ids.size(), static_cast<size_t>(size) * static_cast<size_t>(size));
  }
  const std::string message = message_of<InputError>([&] { read_packed(folder / "pack.bin", {.size = 32}); });
  EXPECT_TRUE(holds(message, "its pictures are 256 x 256, not 32 x 32")) << message;
}

TEST(PathfinderPacked, NothingAppearsBeforeTheEnd) {
  TemporaryFolder folder;
  {
    PackedWriter writer(folder / "pack.bin", 32, 2);
    writer.add(name_of(0), 1, pixels_of(0, 32));
    EXPECT_THROW(writer.commit(), std::logic_error);
    EXPECT_THROW(writer.add(name_of(1), 2, pixels_of(1, 32)), std::logic_error);
    EXPECT_THROW(writer.add(name_of(1), 1, pixels_of(1, 16)), std::logic_error);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_THROW(PackedWriter(folder / "none/pack.bin", 32, 2), InputError);
  EXPECT_THROW(read_packed(folder / "pack.bin", {}), InputError);
}

TEST(PathfinderPacked, FindsEveryCut) {
  TemporaryFolder folder;
  write_pack(folder / "whole.bin", 5, 4);
  const std::string bytes = file_bytes(folder / "whole.bin");
  EXPECT_EQ(read_packed(folder / "whole.bin", {.size = 4}).train->size(), 4);
  for (size_t length = 0; length <= bytes.size() + 1; ++length) {
    if (length == bytes.size()) continue;
    put_file(folder / "cut.bin", (bytes + "x").substr(0, length));
    for (const int64_t held : {int64_t{0}, int64_t{1} << 20}) {
      const auto message = message_of<InputError>([&] { read_packed(folder / "cut.bin", {.size = 4, .held = held}); });
      EXPECT_TRUE(holds(message, (folder / "cut.bin").string() + ": ")) << length;
      EXPECT_TRUE(holds(message, "; delete it to have it made again")) << length << message;
    }
  }
}

// Any changed byte, but for the four that are kept for later: in the head or index it is found at once, in a picture
// when the picture is read.
TEST(PathfinderPacked, FindsEveryChangedByte) {
  TemporaryFolder folder;
  write_pack(folder / "whole.bin", 5, 4);
  const std::string bytes = file_bytes(folder / "whole.bin");
  const size_t pixels_begin = 24, pixels_end = 24 + size_t{5} * 16;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    put_file(folder / "changed.bin", changed);
    const auto read = [&](int64_t held) { return read_packed(folder / "changed.bin", {.size = 4, .held = held}); };
    const std::string message = message_of<InputError>([&] { read(1 << 20); });
    EXPECT_TRUE(holds(message, "; delete it to have it made again")) << at << message;
    if (at < pixels_begin || at >= pixels_end) {
      EXPECT_EQ(message_of<InputError>([&] { read(0); }), message);
      continue;
    }
    const Splits splits = read(0);
    int damaged = 0;
    for (const DataSplit* split : {splits.train.get(), splits.validation.get(), splits.test.get()}) {
      for (int64_t i = 0; i < split->size(); ++i) {
        if (message_of<InputError>([&] { split->get(i); }) == message) ++damaged;
      }
    }
    EXPECT_EQ(damaged, 1) << at;
  }
}

// Figures that no writer gives, under a right checksum.
TEST(PathfinderPacked, DoesNotBelieveItsFigures) {
  TemporaryFolder folder;
  write_pack(folder / "whole.bin", 2, 4);
  const std::string bytes = file_bytes(folder / "whole.bin");
  const size_t index = 24 + 32, first_label = index + 8, first_length = index + 9;
  const auto changed = [&](size_t at, std::string_view with) {
    std::string result = bytes.substr(0, bytes.size() - 8);
    result.replace(at, with.size(), with);
    const uint64_t sum = hash_bytes(result.substr(0, 24) + result.substr(index));
    for (int shift = 0; shift < 64; shift += 8) result += static_cast<char>(sum >> shift);
    put_file(folder / "changed.bin", result);
    return message_of<InputError>([&] { read_packed(folder / "changed.bin", {.size = 4}); });
  };
  EXPECT_EQ(changed(0, ""), "");
  EXPECT_TRUE(holds(changed(first_label, "\x02"), "its index is impossible"));
  EXPECT_TRUE(holds(changed(first_length, "\xff\xff"), "its index is impossible"));
  EXPECT_TRUE(holds(changed(first_length, std::string_view("\x14\x00", 2)), "its index is impossible"));
  EXPECT_TRUE(holds(changed(16, "\xff\xff\xff\xff\xff\xff\xff\xff"), "cut short"));  // pictures
  EXPECT_TRUE(holds(changed(16, std::string_view("\0\0\0\0\0\0\0\0", 8)), "cut short"));
  EXPECT_TRUE(holds(changed(8, "\xff\xff\xff\xff"), "cut short"));                                  // size
  EXPECT_TRUE(holds(changed(bytes.size() - 16, "\xff\xff\xff\xff\xff\xff\xff\xff"), "cut short"));  // index
}

}  // namespace
}  // namespace lra::pathfinder
