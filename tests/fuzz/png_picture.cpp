// PNG pictures, as they are and with right checksums of their chunks.
#include <zlib.h>

#include "datasets/png.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

namespace {

// Length, type, data and checksum of each chunk follow the signature.
std::string with_checksums(std::string bytes) {
  constexpr size_t kSignature = 8, kFrame = 12;
  const auto number = [&](size_t at) {
    size_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  for (size_t at = kSignature; at + kFrame <= bytes.size();) {
    const size_t length = number(at);
    if (length > bytes.size() - at - kFrame) break;
    const auto* const type = reinterpret_cast<const Bytef*>(bytes.data() + at + 4);
    const uLong sum = crc32(0, type, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += kFrame + length;
  }
  return bytes;
}

void read_picture(std::string_view bytes) {
  GreyPicture picture;
  const bool good = accepts([&] { picture = read_grey_png(bytes); });
  std::vector<uint8_t> pixels(size_t{32} * 32);
  const bool of_size = accepts([&] { read_grey_png(bytes, 32, 32, pixels); });
  require(of_size == (good && picture.width == 32 && picture.height == 32), "the two ways to read a picture disagree");
  if (of_size) require(pixels == picture.pixels, "the two ways to read a picture give two pictures");
  if (!good) return;
  require(picture.width > 0 && picture.height > 0 &&
              picture.pixels.size() == static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height),
          "a picture has not the pixels that it says");
  if (picture.pixels.size() > 100'000) return;
  const GreyPicture again = read_grey_png(write_grey_png(picture));
  require(again.width == picture.width && again.pixels == picture.pixels,
          "a picture changes when it is written and read");
}

}  // namespace

void png_picture(Bytes bytes) {
  read_picture(text_of(bytes));
  read_picture(with_checksums(std::string(text_of(bytes))));
}

}  // namespace lra::fuzz
