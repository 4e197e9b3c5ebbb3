// NPY: numpy.lib.format, versions 1.0 to 3.0.
#include "datasets/pathfinder/metadata.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

#include "lib/util/check.h"

namespace lra::pathfinder {
namespace {

constexpr std::string_view kSignature = "\x93NUMPY";
constexpr size_t kFields = 4;  // those that are looked at
using Fields = std::array<std::string_view, kFields>;

// Names below the set's folder, as the release has them: no empty part, none that leads upward, no byte that ends or
// hides a name.
bool is_path_below(std::string_view path) {
  if (path.size() > 1000) return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    for (const char c : part) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
    }
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_file_name(std::string_view name) { return name.find('/') == std::string_view::npos && is_path_below(name); }

template <class Integer>
bool parse_integer(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

void add_row(Metadata& metadata, const Fields& fields, int64_t number) {
  const auto& [folder, file, index, label] = fields;
  MetadataRow row{.folder = std::string(folder), .file = std::string(file), .number = number};
  if (!is_path_below(folder) || !is_file_name(file)) {
    metadata.bad.push_back(
        {"bad path",
         fmt::format("'{}' and '{}' are no folder and file of this set; right is imgs/0 sample_0.png", shown(folder),
                     shown(file)),
         number});
  } else if (!parse_integer(index, row.index)) {
    metadata.bad.push_back(
        {"bad index", fmt::format("the third field '{}' is not the picture's number", shown(index)), number});
  } else if (!parse_integer(label, row.label) || row.label > 1) {
    metadata.bad.push_back({"bad label", fmt::format("the label '{}' is not 0 or 1", shown(label)), number});
  } else {
    metadata.rows.push_back(std::move(row));
  }
}

Metadata parse_text(std::string_view bytes) {
  constexpr std::string_view kBlanks = " \t\r";
  Metadata metadata;
  for (int64_t number = 1; !bytes.empty(); ++number) {
    std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    Fields fields;
    size_t count = 0;
    for (size_t begin; (begin = line.find_first_not_of(kBlanks)) != std::string_view::npos;) {
      line.remove_prefix(begin);
      const size_t end = std::min(line.find_first_of(kBlanks), line.size());
      if (count < kFields) fields[count] = line.substr(0, end);
      line.remove_prefix(end);
      ++count;
    }
    if (count == 0) continue;
    if (count < kFields) {
      metadata.bad.push_back(
          {"wrong field count",
           fmt::format("{} of at least four fields: folder, file, index, label, with blanks between", count), number});
    } else {
      add_row(metadata, fields, number);
    }
  }
  return metadata;
}

// The header of an NPY file, a Python dictionary of three entries, as numpy writes it.
struct NpyHeader {
  char kind = 0;         // 'U' or 'S'
  uint64_t width = 0;    // characters of a string
  bool fortran = false;  // columns one after another
  uint64_t rows = 0, columns = 0;

  uint64_t string_bytes() const { return kind == 'U' ? 4 * width : width; }
};

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool type = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !type) {
        parse_type(header);
        type = true;
      } else if (key == "fortran_order" && !order) {
        header.fortran = truth();
        order = true;
      } else if (key == "shape" && !shape) {
        parse_shape(header);
        shape = true;
      } else {
        damaged();
      }
      if (!take(',') && !at('}')) damaged();
    }
    skip_blanks();
    if (!text_.empty() || !type || !order || !shape) damaged();
    return header;
  }

 private:
  [[noreturn]] static void damaged() { throw InputError("damaged NPY header"); }

  void skip_blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }

  bool at(char c) {
    skip_blanks();
    return !text_.empty() && text_[0] == c;
  }

  bool take(char c) {
    if (!at(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) damaged();
  }

  std::string_view quoted() {
    const char quote = at('"') ? '"' : '\'';
    expect(quote);
    const size_t end = text_.find(quote);
    if (end == std::string_view::npos) damaged();
    const std::string_view inside = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return inside;
  }

  bool truth() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return word == "True";
      }
    }
    damaged();
  }

  uint64_t number() {
    skip_blanks();
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) damaged();
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }

  void parse_type(NpyHeader& header) {
    if (at('[')) throw InputError("an NPY array of records; right is a two-dimensional array of strings (<U or |S)");
    const std::string_view type = quoted();
    if (type == "|O" || type == "O") {
      throw InputError(
          "an NPY object array, which only Python can read; save it as strings: "
          "numpy.save(file, rows.astype(str))");
    }
    const bool strings = type.starts_with("<U") || type.starts_with("|S");
    if (!strings || !parse_integer(type.substr(2), header.width) || header.width == 0 || header.width > 65536) {
      throw InputError("an NPY array of type '{}'; right is a two-dimensional array of strings (<U or |S)",
                       shown(type));
    }
    header.kind = type[1];
  }

  void parse_shape(NpyHeader& header) {
    expect('(');
    std::array<uint64_t, 2> sizes{};
    size_t dimensions = 0;
    while (!take(')')) {
      const uint64_t size = number();
      if (dimensions < 2) sizes[dimensions] = size;
      ++dimensions;
      if (!take(',') && !at(')')) damaged();
    }
    if (dimensions != 2) {
      throw InputError("an NPY array of {} dimensions; right are two, a row a picture", dimensions);
    }
    header.rows = sizes[0];
    header.columns = sizes[1];
    if (header.columns < kFields) {
      throw InputError("an NPY array of {} columns; right are at least four: folder, file, index, label",
                       header.columns);
    }
  }

  std::string_view text_;
};

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Takes the header off the front of `bytes`.
NpyHeader take_header(std::string_view& bytes) {
  constexpr size_t kLongest = size_t{1} << 16;
  constexpr size_t kVersion = kSignature.size() + 2;
  if (bytes.size() < kVersion) throw InputError("an NPY file cut short");
  const int version = static_cast<unsigned char>(bytes[kSignature.size()]);
  if (version < 1 || version > 3) throw InputError("NPY version {}; known are 1 to 3", version);
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < kVersion + length_bytes) throw InputError("an NPY file cut short");
  const uint64_t length = little_endian(bytes.substr(kVersion, length_bytes));
  bytes.remove_prefix(kVersion + length_bytes);
  if (length > bytes.size()) throw InputError("an NPY file cut short");
  if (length > kLongest) throw InputError("damaged NPY header");
  const std::string_view text = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return HeaderParser(text).parse();
}

void append_utf8(std::string& text, uint32_t c) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0;  // no character: as bad in a name as a zero
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xe0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

// The string in a fixed-width cell: zeros at its end fill it up.
void decode(const NpyHeader& header, std::string_view cell, std::string& text) {
  text.clear();
  if (header.kind == 'S') {
    const size_t last = cell.find_last_not_of('\0');
    text = cell.substr(0, last == std::string_view::npos ? 0 : last + 1);
    return;
  }
  size_t length = cell.size() / 4;
  while (length > 0 && little_endian(cell.substr(4 * (length - 1), 4)) == 0) --length;
  for (size_t i = 0; i < length; ++i) append_utf8(text, static_cast<uint32_t>(little_endian(cell.substr(4 * i, 4))));
}

Metadata parse_npy(std::string_view bytes) {
  const NpyHeader header = take_header(bytes);
  const uint64_t width = header.string_bytes();
  const uint64_t cells = bytes.size() / width;
  if (header.rows > cells / header.columns) throw InputError("an NPY file cut short");
  if (header.rows * header.columns * width != bytes.size()) {
    throw InputError("an NPY file with more bytes than its shape ({}, {}) has", header.rows, header.columns);
  }
  Metadata metadata;
  std::array<std::string, kFields> texts;
  for (uint64_t row = 0; row < header.rows; ++row) {
    for (uint64_t column = 0; column < kFields; ++column) {
      const uint64_t cell = header.fortran ? column * header.rows + row : row * header.columns + column;
      decode(header, bytes.substr(cell * width, width), texts[column]);
    }
    add_row(metadata, {texts[0], texts[1], texts[2], texts[3]}, static_cast<int64_t>(row) + 1);
  }
  return metadata;
}

}  // namespace

Metadata parse_metadata(std::string_view bytes) {
  return bytes.starts_with(kSignature) ? parse_npy(bytes) : parse_text(bytes);
}

}  // namespace lra::pathfinder
