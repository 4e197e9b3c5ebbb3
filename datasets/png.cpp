// libpng reports errors by longjmp. It may pass only frames without destructors: each function that calls setjmp holds
// plain values and pointers alone, and what owns memory lives in its callers.
#include "datasets/png.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <exception>

#include "lib/util/check.h"

namespace lra {
namespace {

// What libpng's callbacks see.
struct Reading {
  const char* at;
  size_t left;
  const char* problem = "damaged";
};

void take_bytes(png_structp png, png_bytep out, size_t count) {
  auto* const reading = static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading->left) {
    reading->problem = "cut short";
    png_error(png, "");
  }
  std::memcpy(out, reading->at, count);
  reading->at += count;
  reading->left -= count;
}

// libpng would print its message otherwise.
[[noreturn]] void stop(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void no_warning(png_structp, png_const_charp) {}

struct Header {
  png_uint_32 width = 0, height = 0;
  int depth = 0, colour = 0, interlace = 0;
};

bool read_header(png_structp png, png_infop info, Header& header) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_info(png, info);
  png_get_IHDR(png, info, &header.width, &header.height, &header.depth, &header.colour, &header.interlace, nullptr,
               nullptr);
  return true;
}

bool read_pixels(png_structp png, uint8_t* pixels, size_t width, size_t height) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  for (int passes = png_set_interlace_handling(png); passes > 0; --passes) {
    for (size_t row = 0; row < height; ++row) png_read_row(png, pixels + row * width, nullptr);
  }
  png_read_end(png, nullptr);
  return true;
}

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : reading_{.at = bytes.data(), .left = bytes.size()} {
    constexpr size_t kSignature = 8;
    if (bytes.empty()) throw InputError("empty");
    if (png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, std::min(bytes.size(), kSignature)) != 0) {
      throw InputError("no PNG");
    }
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, stop, no_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, &reading_, take_bytes);
    // Too large a picture is refused in our words below.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    // Texts, profiles and the like are passed over: libpng would make room for as many bytes as they say they have,
    // whatever png_set_chunk_malloc_max says, before it sees that the file ends.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Header header() {
    Header header;
    if (!read_header(png_, info_, header)) throw InputError("{}", reading_.problem);
    if (header.colour == PNG_COLOR_TYPE_PALETTE) throw InputError("palette");
    if ((header.colour & PNG_COLOR_MASK_COLOR) != 0) throw InputError("RGB colours");
    if ((header.colour & PNG_COLOR_MASK_ALPHA) != 0) throw InputError("alpha channel");
    if (header.depth == 16) throw InputError("16 bits a channel");
    if (header.depth < 8) throw InputError("fewer than 8 bits a pixel");
    return header;
  }

  void pixels(const Header& header, uint8_t* pixels) {
    if (!read_pixels(png_, pixels, header.width, header.height)) throw InputError("{}", reading_.problem);
  }

 private:
  Reading reading_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// Bytes coming out; an exception can't pass through libpng and waits here.
struct Writing {
  std::string bytes = {};
  std::exception_ptr thrown = {};
};

bool append(Writing& writing, const char* bytes, size_t count) {
  try {
    writing.bytes.append(bytes, count);
    return true;
  } catch (...) {
    writing.thrown = std::current_exception();
    return false;
  }
}

void put_bytes(png_structp png, png_bytep bytes, size_t count) {
  if (!append(*static_cast<Writing*>(png_get_io_ptr(png)), reinterpret_cast<const char*>(bytes), count)) {
    png_error(png, "");
  }
}

void no_flush(png_structp) {}

struct Drawing {
  int width, height, colour, channels;
  const uint8_t* pixels;
};

bool write_all(png_structp png, png_infop info, const Drawing& drawing) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_compression_level(png, 6);
  png_set_IHDR(png, info, static_cast<png_uint_32>(drawing.width), static_cast<png_uint_32>(drawing.height), 8,
               drawing.colour, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const size_t stride = static_cast<size_t>(drawing.width) * static_cast<size_t>(drawing.channels);
  for (size_t row = 0; row < static_cast<size_t>(drawing.height); ++row) {
    png_write_row(png, drawing.pixels + row * stride);
  }
  png_write_end(png, info);
  return true;
}

std::string write(const Drawing& drawing, size_t given) {
  check(
      drawing.width > 0 && drawing.width <= kLargestPngSide && drawing.height > 0 && drawing.height <= kLargestPngSide,
      "a PNG of {} x {} pixels", drawing.width, drawing.height);
  check(given == static_cast<size_t>(drawing.width) * static_cast<size_t>(drawing.height) *
                     static_cast<size_t>(drawing.channels),
        "{} bytes for a PNG of {} x {} pixels", given, drawing.width, drawing.height);
  Writing writing;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, stop, no_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  bool written = false;
  if (info != nullptr) {
    png_set_write_fn(png, &writing, put_bytes, no_flush);
    written = write_all(png, info, drawing);
  }
  png_destroy_write_struct(&png, &info);
  if (writing.thrown) std::rethrow_exception(writing.thrown);
  if (!written) throw std::bad_alloc();  // all else was checked
  return std::move(writing.bytes);
}

}  // namespace

GreyPicture read_grey_png(std::string_view bytes) {
  PngReader reader(bytes);
  const Header header = reader.header();
  if (header.width > kLargestPngSide || header.height > kLargestPngSide) {
    throw InputError("over {} pixels wide or high", kLargestPngSide);
  }
  // zlib makes at most 1032 bytes of one: a few bytes can't ask for hundreds of megabytes.
  if (static_cast<uint64_t>(header.width) * header.height / 1032 > bytes.size()) throw InputError("cut short");
  GreyPicture picture{.width = static_cast<int>(header.width), .height = static_cast<int>(header.height), .pixels = {}};
  picture.pixels.resize(static_cast<size_t>(header.width) * header.height);
  reader.pixels(header, picture.pixels.data());
  return picture;
}

void read_grey_png(std::string_view bytes, int width, int height, std::span<uint8_t> pixels) {
  check(pixels.size() == static_cast<size_t>(width) * static_cast<size_t>(height), "{} bytes for {} x {} pixels",
        pixels.size(), width, height);
  PngReader reader(bytes);
  const Header header = reader.header();
  if (header.width != static_cast<png_uint_32>(width) || header.height != static_cast<png_uint_32>(height)) {
    throw InputError("{} x {} pixels, not {} x {}", header.width, header.height, width, height);
  }
  reader.pixels(header, pixels.data());
}

std::string write_grey_png(const GreyPicture& picture) {
  return write({picture.width, picture.height, PNG_COLOR_TYPE_GRAY, 1, picture.pixels.data()}, picture.pixels.size());
}

std::string write_rgb_png(int width, int height, std::span<const uint8_t> rgb) {
  return write({width, height, PNG_COLOR_TYPE_RGB, 3, rgb.data()}, rgb.size());
}

}  // namespace lra
