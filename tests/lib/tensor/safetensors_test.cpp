// safetensors: files of the original library are read and equalled byte for byte, hostile ones refused.
#include "lib/tensor/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/rng.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(LRA_SOURCE_DIR) / "tests/lib/tensor/data";
const std::string kWeirdName = "weird \xc3\xa9 \"name\"";

SafetensorsFile parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span<const char>(bytes)), "x.safetensors");
}

std::string file_of(const std::string& header, size_t data_size, uint64_t stated = ~uint64_t{0}) {
  const uint64_t size = stated == ~uint64_t{0} ? header.size() : stated;
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + std::string(data_size, '\1');
}

std::string error_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const InputError& error) {
    std::string text = error.what();
    EXPECT_EQ(text.rfind("x.safetensors: ", 0), 0u) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "no error";
  return "";
}

fs::path temporary(const std::string& name) {
  return fs::temp_directory_path() / ("lra-" + std::to_string(::getpid()) + "-" + name);
}

TEST(Safetensors, ReadsWhatTheOriginalLibraryWrites) {
  const SafetensorsFile file = read_safetensors(kData / "numpy.safetensors");
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"note", "a \"b\"\n"}}));
  ASSERT_EQ(file.tensors.size(), 5u);
  const TensorData& matrix = file.tensors.at("matrix");
  EXPECT_EQ(matrix.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(matrix.elements(), 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(matrix.floats()[i], static_cast<float>(i) / 4);
  EXPECT_TRUE(file.tensors.at("scalar").shape.empty());
  EXPECT_EQ(file.tensors.at("scalar").floats()[0], -2.5f);
  EXPECT_EQ(file.tensors.at("empty").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_TRUE(file.tensors.at("empty").floats().empty());
  const auto ids = file.tensors.at("ids").ints();
  EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.end()), (std::vector<int32_t>{1, -2, 2147483647}));
  EXPECT_TRUE(std::isnan(file.tensors.at(kWeirdName).floats()[1]));
  EXPECT_THROW(file.tensors.at("ids").floats(), std::logic_error);
  EXPECT_THROW(matrix.ints(), std::logic_error);
}

TEST(Safetensors, WritesWhatTheOriginalLibraryWrites) {
  const std::vector<float> matrix = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f}, scalar = {-2.5f};
  const std::vector<float> weird = {3.14159274f, std::numeric_limits<float>::quiet_NaN(),
                                    std::numeric_limits<float>::infinity()};
  const fs::path path = temporary("written.safetensors");
  write_safetensors(
      path, {{"format", "pt"}},
      {{kWeirdName, {3}, weird}, {"scalar", {}, scalar}, {"matrix", {2, 3}, matrix}, {"empty", {0, 4}, {}}});
  EXPECT_EQ(read_file(path), read_file(kData / "numpy_floats.safetensors"));
  fs::remove(path);
}

TEST(Safetensors, RoundTripKeepsEveryBit) {
  Random random(0, RandomStream::kData);
  std::vector<std::vector<float>> values(20);
  std::vector<TensorRef> tensors;
  for (size_t t = 0; t < values.size(); ++t) {
    const int64_t rows = random.below(5), cols = random.below(70);
    for (int64_t i = 0; i < rows * cols; ++i) values[t].push_back(std::bit_cast<float>(random.next()));
    tensors.push_back({"layer." + std::to_string(t), {rows, cols}, values[t]});
  }
  const fs::path path = temporary("round.safetensors");
  write_safetensors(path, {{"lra", "{\"a\": 1}"}}, tensors);
  const std::string once = read_file(path);
  const SafetensorsFile file = read_safetensors(path);
  EXPECT_EQ(file.metadata.at("lra"), "{\"a\": 1}");
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const TensorRef& tensor : tensors) {
    const TensorData& read = file.tensors.at(tensor.name);
    EXPECT_EQ(read.shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(read.bytes, std::as_bytes(tensor.values))) << tensor.name;
  }
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(path, {{"lra", "{\"a\": 1}"}}, tensors);
  EXPECT_EQ(read_file(path), once);  // the order of the arguments does not matter
  fs::remove(path);
}

TEST(Safetensors, WriterRefusesBrokenTensors) {
  const std::vector<float> three(3);
  const fs::path path = temporary("broken.safetensors");
  EXPECT_THROW(write_safetensors(path, {}, {{"a", {2}, three}}), std::logic_error);
  EXPECT_THROW(write_safetensors(path, {}, {{"a", {3}, three}, {"a", {3}, three}}), std::logic_error);
  EXPECT_THROW(write_safetensors(path, {}, {{"__metadata__", {3}, three}}), std::logic_error);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THROW(write_safetensors("/nowhere/x", {}, {}), InputError);
}

TEST(Safetensors, DamagedFilesAreRefusedWithTheReason) {
  const auto entry = [](const std::string& fields) { return "{\"t\":{" + fields + "}}"; };
  const std::string f32 = R"("dtype":"F32",)";
  struct Case {
    std::string bytes, reason;
  };
  const std::vector<Case> cases = {
      {"", "too few"},
      {"1234567", "too few"},
      {file_of("{}", 0, 3), "does not fit"},
      {file_of("{}", 0, ~uint64_t{0} - 1), "does not fit"},
      {file_of(" {}", 0), "no object"},
      {file_of("[]", 0), "no object"},
      {file_of("", 0), "no object"},
      {file_of("{", 0), "not valid JSON"},
      {file_of("{}}", 0), "not valid JSON"},
      {file_of("{" + std::string(100'000, '['), 0), "not valid JSON"},
      {file_of("{\"t\":" + std::string(100'000, '['), 0), "nested too deeply"},
      {file_of(R"({"__metadata__":1})", 0), "no object of strings"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "metadata \"a\" is no string"},
      {file_of("{\"t\":1}", 0), "needs exactly"},
      {file_of(entry(R"("dtype":"F32","shape":[1])"), 4), "needs exactly"},
      {file_of(entry(R"("dtype":"F64","shape":[1],"data_offsets":[0,8])"), 8), "F32 and I32"},
      {file_of(entry(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), 4), "no string"},
      {file_of(entry(f32 + R"("shape":1,"data_offsets":[0,4])"), 4), "no list"},
      {file_of(entry(f32 + R"("shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])"), 4), "no list"},
      {file_of(entry(f32 + R"("shape":[-1],"data_offsets":[0,4])"), 4), "whole number"},
      {file_of(entry(f32 + R"("shape":[1.0],"data_offsets":[0,4])"), 4), "whole number"},
      {file_of(entry(f32 + R"("shape":["1"],"data_offsets":[0,4])"), 4), "whole number"},
      {file_of(entry(f32 + R"("shape":[4611686018427387905],"data_offsets":[0,4])"), 4), "impossible shape"},
      {file_of(entry(f32 + R"("shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0), "impossible shape"},
      {file_of(entry(f32 + R"("shape":[18446744073709551615],"data_offsets":[0,4])"), 4), "impossible shape"},
      {file_of(entry(f32 + R"("shape":[1],"data_offsets":[0])"), 4), "data_offsets"},
      {file_of(entry(f32 + R"("shape":[1],"data_offsets":[-4,0])"), 4), "data_offsets"},
      {file_of(entry(f32 + R"("shape":[1],"data_offsets":[4,0])"), 4), "truncated or damaged"},
      {file_of(entry(f32 + R"("shape":[2],"data_offsets":[0,8])"), 4), "truncated or damaged"},
      {file_of(entry(f32 + R"("shape":[2],"data_offsets":[0,4])"), 4), "its shape needs 8"},
      {file_of(entry(f32 + R"("shape":[1],"data_offsets":[0,4])"), 5), "1 bytes follow"},
      {file_of(entry(f32 + R"("shape":[1],"data_offsets":[4,8])"), 8), "begins at byte 4"},
      {file_of("{}", 1), "1 bytes follow"},
      // Two tensors over the same bytes, and one name twice.
      {file_of(
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
           4),
       "begins at byte 0"},
      {file_of(
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
           4),
       "stands twice"},
      // A name that would break the message's line.
      {file_of(R"({"a\nb":1})", 0), R"("a\x0ab")"},
  };
  for (const Case& c : cases) {
    const std::string error = error_of(c.bytes);
    EXPECT_NE(error.find(c.reason), std::string::npos) << error << "\nlacks: " << c.reason;
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = read_file(kData / "numpy.safetensors");
  for (size_t size = 0; size < whole.size(); ++size) error_of(whole.substr(0, size));
  error_of(whole + "x");
}

TEST(Safetensors, HostileBytesNeverCrash) {
  const std::string whole = read_file(kData / "numpy.safetensors");
  const auto header_end = static_cast<uint32_t>(8 + whole.find("}}  ") + 2);
  Random random(0, RandomStream::kData);
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = whole;
    for (uint32_t k = 0; k <= random.below(3); ++k) {
      // Most of them in the header; digits often, since they pass as JSON.
      const uint32_t place = random.below(random.below(8) == 0 ? static_cast<uint32_t>(whole.size()) : header_end);
      bytes[place] = static_cast<char>(random.below(2) == 0 ? '0' + random.below(10) : random.below(256));
    }
    try {
      const SafetensorsFile file = parse(bytes);
      for (const auto& [name, tensor] : file.tensors) {  // what is accepted is whole
        ASSERT_EQ(tensor.bytes.size(), 4 * static_cast<size_t>(tensor.elements())) << name;
      }
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5'000);
  EXPECT_LT(refused, 10'000);
}

}  // namespace
}  // namespace lra
