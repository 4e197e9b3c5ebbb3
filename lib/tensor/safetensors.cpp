// Reader and writer of the safetensors format. Layout: 8 bytes little-endian length n, n bytes of JSON
// {"name": {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {string: string}}, then the data.
#include "lib/tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <tuple>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/json.h"

namespace lra {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian numbers");

using Header = nlohmann::json;  // keys sorted: look-ups in a hostile header stay cheap

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr size_t kMaxRank = 8;
constexpr uint64_t kElementSize = 4;  // F32 and I32
constexpr char kMetadata[] = "__metadata__";

std::string in_quotes(std::string_view name) { return '"' + shown(name, 100) + '"'; }

struct Entry {
  uint64_t begin = 0, end = 0;
  std::string name;
  TensorData tensor;
};

Header parse_header(std::string_view text, const std::string& file) {
  if (text.empty() || text.front() != '{')
    throw InputError("{}: not a safetensors file: its header is no object", file);
  std::set<std::string> names;
  const auto observe = [&](int depth, Header::parse_event_t event, Header& value) {
    if (depth > 4) throw InputError("{}: the header is nested too deeply", file);
    if (event == Header::parse_event_t::key && depth == 1 && !names.insert(value.get<std::string>()).second) {
      throw InputError("{}: tensor {} stands twice in the header", file, in_quotes(value.get<std::string>()));
    }
    return true;
  };
  try {
    return Header::parse(text.begin(), text.end(), observe);
  } catch (const Header::exception&) {
    throw InputError("{}: the header is not valid JSON: the file is damaged or no safetensors file", file);
  }
}

std::map<std::string, std::string> parse_metadata(const Header& json, const std::string& file) {
  std::map<std::string, std::string> result;
  if (!json.is_object()) throw InputError("{}: the header's {} is no object of strings", file, kMetadata);
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) throw InputError("{}: metadata {} is no string", file, in_quotes(key));
    result[key] = value.get<std::string>();
  }
  return result;
}

Entry parse_entry(const std::string& name, const Header& json, uint64_t data_size, const std::string& file) {
  const auto fail = [&](const std::string& what) { throw InputError("{}: tensor {} {}", file, in_quotes(name), what); };
  Entry entry;
  entry.name = name;
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    fail("needs exactly dtype, shape and data_offsets");
  }
  const Header &dtype = json["dtype"], &shape = json["shape"], &offsets = json["data_offsets"];
  if (!dtype.is_string()) fail("has a dtype that is no string");
  entry.tensor.dtype = dtype.get<std::string>();
  if (entry.tensor.dtype != "F32" && entry.tensor.dtype != "I32") {
    fail("is of type " + in_quotes(entry.tensor.dtype) + "; F32 and I32 can be read");
  }
  if (!shape.is_array() || shape.size() > kMaxRank) fail("has a shape that is no list of at most 8 sizes");
  uint64_t bytes = kElementSize;
  for (const Header& size : shape) {
    if (!size.is_number_unsigned()) fail("has a size that is no whole number of 0 or more");
    const uint64_t n = size.get<uint64_t>();
    if (n > static_cast<uint64_t>(INT64_MAX) || __builtin_mul_overflow(bytes, n, &bytes))
      fail("has an impossible shape");
    entry.tensor.shape.push_back(static_cast<int64_t>(n));
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    fail("has data_offsets that are not two whole numbers");
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_size) {
    fail(fmt::format("lies at bytes {} to {} of {} bytes of data: the file is truncated or damaged", entry.begin,
                     entry.end, data_size));
  }
  if (entry.end - entry.begin != bytes) {
    fail(fmt::format("has {} bytes, its shape needs {}", entry.end - entry.begin, bytes));
  }
  return entry;
}

// Every byte of the data belongs to exactly one tensor.
void check_layout(std::vector<Entry>& entries, uint64_t data_size, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != position) {
      throw InputError("{}: tensor {} begins at byte {} of the data, expected {}: the file is damaged", file,
                       in_quotes(entry.name), entry.begin, position);
    }
    position = entry.end;
  }
  if (position != data_size) {
    throw InputError("{}: {} bytes follow the last tensor: the file is damaged", file, data_size - position);
  }
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

template <class T>
std::span<const T> typed(const TensorData& tensor, const char* dtype) {
  check(tensor.dtype == dtype, "tensor of type {} read as {}", tensor.dtype, dtype);
  return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}

}  // namespace

int64_t TensorData::elements() const { return product(shape); }
std::span<const float> TensorData::floats() const { return typed<float>(*this, "F32"); }
std::span<const int32_t> TensorData::ints() const { return typed<int32_t>(*this, "I32"); }

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size) {
    throw InputError("{}: {} bytes are too few for a safetensors file", name, bytes.size());
  }
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  bytes = bytes.subspan(sizeof header_size);
  if (header_size > kMaxHeader || header_size > bytes.size()) {
    throw InputError("{}: a header of {} bytes does not fit: the file is truncated or no safetensors file", name,
                     header_size);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), header_size);
  const std::span<const std::byte> data = bytes.subspan(header_size);
  const Header header = parse_header(text, name);

  SafetensorsFile file;
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key == kMetadata) {
      file.metadata = parse_metadata(value, name);
    } else {
      entries.push_back(parse_entry(key, value, data.size(), name));
    }
  }
  check_layout(entries, data.size(), name);
  for (Entry& entry : entries) {
    const auto part = data.subspan(entry.begin, entry.end - entry.begin);
    entry.tensor.bytes.assign(part.begin(), part.end());
    file.tensors.emplace(entry.name, std::move(entry.tensor));
  }
  return file;
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  return parse_safetensors(std::as_bytes(std::span<const char>(bytes)), path.string());
}

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       std::vector<TensorRef> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorRef& a, const TensorRef& b) { return a.name < b.name; });
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t position = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorRef& tensor = tensors[i];
    check(tensor.name != kMetadata && (i == 0 || tensor.name != tensors[i - 1].name), "tensor name {} cannot be used",
          tensor.name);
    check(product(tensor.shape) == static_cast<int64_t>(tensor.values.size()), "tensor {} does not fill its shape",
          tensor.name);
    const uint64_t end = position + tensor.values.size_bytes();
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text = dump_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the format aligns the data to 8 bytes

  const uint64_t header_size = text.size();
  std::string bytes(sizeof header_size, '\0');
  std::memcpy(bytes.data(), &header_size, sizeof header_size);
  bytes.reserve(bytes.size() + text.size() + position);
  bytes += text;
  for (const TensorRef& tensor : tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes());
  }
  write_file_atomic(path, bytes);
}

}  // namespace lra
