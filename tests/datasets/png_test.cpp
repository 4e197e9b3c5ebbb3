// PNG: the fixtures were written by Pillow, the interlaced one by hand (data/make_pathfinder.py).
#include "datasets/png.h"

#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "lib/util/check.h"
#include "lib/util/rng.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {
namespace {

std::string fixture(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(LRA_SOURCE_DIR) / "tests/datasets/data/png" / name;
  EXPECT_TRUE(std::filesystem::is_regular_file(path)) << path;
  return file_bytes(path);
}

std::vector<uint8_t> pattern(int width, int height) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) pixels.push_back(static_cast<uint8_t>(y * 7 + x * 11));
  }
  return pixels;
}

std::string refusal(const std::string& bytes) {
  return message_of<InputError>([&] { read_grey_png(bytes); });
}

TEST(Png, ReadsGreyPicturesInterlacedOrNot) {
  for (const char* name : {"grey.png", "interlaced.png"}) {
    const GreyPicture picture = read_grey_png(fixture(name));
    EXPECT_EQ(picture.width, 32);
    EXPECT_EQ(picture.height, 32);
    EXPECT_EQ(picture.pixels, pattern(32, 32)) << name;
  }
  const GreyPicture small = read_grey_png(fixture("5x3.png"));
  EXPECT_EQ(small.width, 5);
  EXPECT_EQ(small.height, 3);
  EXPECT_EQ(small.pixels, pattern(5, 3));
  EXPECT_EQ(read_grey_png(fixture("black.png")).pixels, std::vector<uint8_t>(1024, 0));
  EXPECT_EQ(read_grey_png(fixture("grey.png") + "more bytes").pixels, pattern(32, 32));
}

TEST(Png, ReadsIntoAPlaceOfTheRightSize) {
  std::vector<uint8_t> pixels(1024);
  read_grey_png(fixture("interlaced.png"), 32, 32, pixels);
  EXPECT_EQ(pixels, pattern(32, 32));
  EXPECT_EQ(message_of<InputError>([&] { read_grey_png(fixture("33x33.png"), 32, 32, pixels); }),
            "33 x 33 pixels, not 32 x 32");
  EXPECT_EQ(message_of<InputError>([&] { read_grey_png(fixture("5x3.png"), 32, 32, pixels); }),
            "5 x 3 pixels, not 32 x 32");
  EXPECT_THROW(read_grey_png(fixture("grey.png"), 32, 31, pixels), std::logic_error);
}

TEST(Png, SaysWhyAPictureIsRefused) {
  const std::map<std::string, std::string> reasons = {{"empty.png", "empty"},
                                                      {"text.png", "no PNG"},
                                                      {"jpeg.png", "no PNG"},
                                                      {"half.png", "cut short"},
                                                      {"no-end.png", "cut short"},
                                                      {"damaged.png", "damaged"},
                                                      {"grey16.png", "16 bits a channel"},
                                                      {"rgb.png", "RGB colours"},
                                                      {"rgba.png", "RGB colours"},
                                                      {"palette.png", "palette"},
                                                      {"grey-alpha.png", "alpha channel"},
                                                      {"1bit.png", "fewer than 8 bits a pixel"}};
  for (const auto& [name, reason] : reasons) EXPECT_EQ(refusal(fixture(name)), reason) << name;
}

void put_big_endian(std::string& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (24 - 8 * i));
}

// The same picture said to be of another size.
std::string resized(uint32_t width, uint32_t height) {
  std::string bytes = fixture("grey.png");
  put_big_endian(bytes, 16, width);
  put_big_endian(bytes, 20, height);
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + 12, 17);
  put_big_endian(bytes, 29, static_cast<uint32_t>(sum));
  return bytes;
}

TEST(Png, DoesNotBelieveLargeSizes) {
  EXPECT_EQ(refusal(resized(32, 32)), "");
  EXPECT_EQ(refusal(resized(16385, 1)), "over 16384 pixels wide or high");
  EXPECT_EQ(refusal(resized(0x7fffffff, 0x7fffffff)), "over 16384 pixels wide or high");
  EXPECT_EQ(refusal(resized(16384, 16384)), "cut short");
  EXPECT_EQ(refusal(resized(32, 64)), "damaged");  // its data ends after 32 rows
  EXPECT_EQ(refusal(resized(0, 32)), "damaged");
  EXPECT_EQ(refusal(resized(0xffffffffu, 32)), "damaged");
}

TEST(Png, EveryCutIsRefused) {
  for (const char* name : {"grey.png", "interlaced.png"}) {
    const std::string bytes = fixture(name);
    ASSERT_GT(bytes.size(), 80u);
    for (size_t length = 0; length < bytes.size(); ++length) {
      const std::string reason = refusal(bytes.substr(0, length));
      EXPECT_EQ(reason, length == 0 ? "empty" : "cut short") << name << " cut at " << length;
    }
  }
}

TEST(Png, OutlivesDamageAndPrintsNothing) {
  const std::string good[] = {fixture("grey.png"), fixture("interlaced.png"), fixture("palette.png")};
  std::set<std::string> reasons;
  int whole = 0;
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  for (uint64_t round = 0; round < 10'000; ++round) {
    Random random(3, RandomStream::kData, round);
    std::string bytes = good[random.below(3)];
    const uint32_t changes = 1 + random.below(4);
    for (uint32_t i = 0; i < changes; ++i) {
      const size_t at = random.below(static_cast<uint32_t>(bytes.size()));
      switch (random.below(3)) {
        case 0: bytes[at] = static_cast<char>(random.below(256)); break;
        case 1: bytes.erase(at, 1 + random.below(4)); break;
        default: bytes.insert(at, bytes.substr(random.below(30), random.below(30))); break;
      }
    }
    try {
      const GreyPicture picture = read_grey_png(bytes);
      ASSERT_EQ(picture.pixels.size(), static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height));
      ++whole;
    } catch (const InputError& error) {
      reasons.insert(error.what());
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(whole, 10);
  EXPECT_TRUE(reasons.contains("damaged"));
  EXPECT_TRUE(reasons.contains("palette"));
  EXPECT_TRUE(reasons.contains("no PNG"));
  EXPECT_LT(reasons.size(), 10u);  // counted by reason: they must be few
}

TEST(Png, WritesWhatItReads) {
  for (const auto& [width, height] : {std::pair{1, 1}, {5, 3}, {32, 32}, {300, 2}, {kLargestPngSide, 1}}) {
    const GreyPicture picture{.width = width, .height = height, .pixels = pattern(width, height)};
    const std::string bytes = write_grey_png(picture);
    EXPECT_EQ(bytes, write_grey_png(picture));
    const GreyPicture read = read_grey_png(bytes);
    EXPECT_EQ(read.width, width);
    EXPECT_EQ(read.height, height);
    EXPECT_EQ(read.pixels, picture.pixels);
  }
  EXPECT_THROW(write_grey_png({.width = 0, .height = 3, .pixels = {}}), std::logic_error);
  EXPECT_THROW(write_grey_png({.width = 2, .height = 2, .pixels = {1, 2, 3}}), std::logic_error);
  EXPECT_THROW(write_grey_png({.width = kLargestPngSide + 1, .height = 1, .pixels = {}}), std::logic_error);
}

TEST(Png, WritesColours) {
  const std::vector<uint8_t> rgb = {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3, 250, 251, 252, 9, 9, 9};
  const std::string bytes = write_rgb_png(3, 2, rgb);
  EXPECT_EQ(refusal(bytes), "RGB colours");
  // Read back by libpng's own simple interface.
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()), 0);
  ASSERT_EQ(image.width, 3u);
  ASSERT_EQ(image.height, 2u);
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> read(PNG_IMAGE_SIZE(image));
  ASSERT_NE(png_image_finish_read(&image, nullptr, read.data(), 0, nullptr), 0);
  EXPECT_EQ(read, rgb);
}

TEST(Png, ManyThreadsAtOnce) {
  const std::string good = fixture("interlaced.png"), bad = fixture("half.png");
  std::vector<std::jthread> threads;
  threads.reserve(4);
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (read_grey_png(good).pixels == pattern(32, 32) && refusal(bad) == "cut short") ++right;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 800);
}

}  // namespace
}  // namespace lra
