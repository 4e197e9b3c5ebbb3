#include "datasets/listops/packed.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "datasets/listops/tokens.h"
#include "datasets/little_endian.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra::listops {
namespace {

constexpr std::string_view kMagic = "LRALOPS1";

}  // namespace

void write_packed(const std::filesystem::path& path, const ByteRows& train, const ByteRows& validation,
                  const ByteRows& test) {
  const std::array<const ByteRows*, 3> splits = {&train, &validation, &test};
  std::string bytes(kMagic);
  for (const ByteRows* rows : splits) put(bytes, static_cast<uint64_t>(rows->size()));
  for (const ByteRows* rows : splits) {
    for (int64_t i = 0; i < rows->size(); ++i) put(bytes, static_cast<uint32_t>(rows->bytes(i).size()));
  }
  for (const ByteRows* rows : splits) {
    for (int64_t i = 0; i < rows->size(); ++i) put(bytes, static_cast<uint8_t>(rows->label(i)));
  }
  for (const ByteRows* rows : splits) {
    for (int64_t i = 0; i < rows->size(); ++i) {
      const std::span<const uint8_t> ids = rows->bytes(i);
      bytes.append(reinterpret_cast<const char*>(ids.data()), ids.size());
    }
  }
  put(bytes, hash_bytes(bytes));
  write_file_atomic(path, bytes);
}

Splits read_packed(const std::filesystem::path& path, const ReadOptions& train, const ReadOptions& validation,
                   const ReadOptions& test) {
  const std::string bytes = read_file(path);
  const auto damaged = [&](const char* what) {
    return InputError("{}: {}; delete it to have it made again", path.string(), what);
  };
  constexpr size_t kHead = kMagic.size() + 3 * sizeof(uint64_t);
  if (!std::string_view(bytes).starts_with(kMagic)) throw damaged("not a packed ListOps file");
  if (bytes.size() < kHead + sizeof(uint64_t)) throw damaged("cut short");
  const size_t payload = bytes.size() - sizeof(uint64_t);
  if (hash_bytes(std::string_view(bytes).substr(0, payload)) != get<uint64_t>(bytes.data() + payload)) {
    throw damaged("its checksum is wrong");
  }
  std::array<uint64_t, 3> counts;
  uint64_t rows = 0;
  for (size_t s = 0; s < 3; ++s) {
    counts[s] = get<uint64_t>(bytes.data() + kMagic.size() + s * sizeof(uint64_t));
    if (counts[s] > payload) throw damaged("its counts are impossible");
    rows += counts[s];
  }
  if (rows > (payload - kHead) / 5) throw damaged("its counts are impossible");
  const char* lengths = bytes.data() + kHead;
  const char* labels = lengths + 4 * rows;
  size_t at = kHead + 5 * rows;  // where the tokens of the next row begin

  const std::array<const ReadOptions*, 3> options = {&train, &validation, &test};
  std::array<std::unique_ptr<ByteRows>, 3> splits;
  uint64_t row = 0;
  for (size_t s = 0; s < 3; ++s) {
    splits[s] = std::make_unique<ByteRows>(options[s]->max_length);
    for (uint64_t i = 0; i < counts[s]; ++i, ++row) {
      const auto length = get<uint32_t>(lengths + 4 * row);
      if (length > payload - at) throw damaged("its lengths are impossible");
      const std::span<const uint8_t> ids(reinterpret_cast<const uint8_t*>(bytes.data()) + at, length);
      at += length;
      const bool known = std::all_of(ids.begin(), ids.end(), [](uint8_t id) { return id >= 1 && id <= kClose; });
      const auto label = static_cast<uint8_t>(labels[row]);
      if (!known || label >= kClasses) throw damaged("its tokens or labels are impossible");
      if (options[s]->limit == 0 || splits[s]->size() < options[s]->limit) {
        splits[s]->append(ids, label);
      }
    }
  }
  if (at != payload) throw damaged("its lengths are impossible");
  return {std::move(splits[0]), std::move(splits[1]), std::move(splits[2])};
}

}  // namespace lra::listops
