// Lists of pictures as text and as NumPy arrays; the arrays were written by NumPy (data/make_pathfinder.py).
#include <gtest/gtest.h>

#include "datasets/pathfinder/metadata.h"
#include "lib/util/check.h"
#include "lib/util/rng.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::pathfinder {
namespace {

std::string fixture(const std::string& name) {
  return file_bytes(std::filesystem::path(LRA_SOURCE_DIR) / "tests/datasets/data/pathfinder-metadata" /
                    (name + ".npy"));
}

std::string refusal(const std::string& bytes) {
  return message_of<InputError>([&] { parse_metadata(bytes); });
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_three_rows(const Metadata& metadata) {
  EXPECT_TRUE(metadata.bad.empty());
  ASSERT_EQ(metadata.rows.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    const MetadataRow& row = metadata.rows[static_cast<size_t>(i)];
    EXPECT_EQ(row.folder, "imgs/0");
    EXPECT_EQ(row.file, "sample_" + std::to_string(i) + ".png");
    EXPECT_EQ(row.path(), "imgs/0/sample_" + std::to_string(i) + ".png");
    EXPECT_EQ(row.index, i);
    EXPECT_EQ(row.label, 1);
    EXPECT_EQ(row.number, i + 1);
  }
}

TEST(PathfinderMetadata, ReadsTextWithAnyLineEnding) {
  const std::string lines[] = {"imgs/0 sample_0.png 0 1 1.0 14 4 2 0.5 1 1", "imgs/0 sample_1.png 1 1 1.0 14 4",
                               "imgs/0  sample_2.png\t2 1"};
  expect_three_rows(parse_metadata(lines[0] + "\n" + lines[1] + "\n" + lines[2] + "\n"));
  expect_three_rows(parse_metadata(lines[0] + "\r\n" + lines[1] + "\r\n" + lines[2]));
  const Metadata spaced = parse_metadata("\n" + lines[0] + "\n \t\r\n" + lines[1]);
  EXPECT_TRUE(spaced.bad.empty());
  ASSERT_EQ(spaced.rows.size(), 2u);
  EXPECT_EQ(spaced.rows[1].number, 4);
  EXPECT_TRUE(parse_metadata("").rows.empty());
}

TEST(PathfinderMetadata, ReadsStringArrays) {
  for (const char* name : {"unicode-1", "unicode-2", "unicode-3", "bytes", "wide", "fortran"}) {
    SCOPED_TRACE(name);
    const std::string bytes = fixture(name);
    ASSERT_TRUE(bytes.starts_with("\x93NUMPY"));
    expect_three_rows(parse_metadata(bytes));
  }
  EXPECT_TRUE(parse_metadata(fixture("none")).rows.empty());
}

TEST(PathfinderMetadata, RefusesOtherArrays) {
  EXPECT_TRUE(holds(refusal(fixture("object")), "an NPY object array")) << refusal(fixture("object"));
  EXPECT_TRUE(holds(refusal(fixture("object")), "save it as strings"));
  EXPECT_TRUE(holds(refusal(fixture("float")), "type '<f8'")) << refusal(fixture("float"));
  EXPECT_TRUE(holds(refusal(fixture("big-endian")), "type '>U16'")) << refusal(fixture("big-endian"));
  EXPECT_TRUE(holds(refusal(fixture("records")), "array of records")) << refusal(fixture("records"));
  EXPECT_TRUE(holds(refusal(fixture("flat")), "1 dimensions; right are two")) << refusal(fixture("flat"));
  EXPECT_TRUE(holds(refusal(fixture("narrow")), "3 columns; right are at least four")) << refusal(fixture("narrow"));
  std::string later = fixture("bytes");
  later[6] = 9;
  EXPECT_EQ(refusal(later), "NPY version 9; known are 1 to 3");
}

TEST(PathfinderMetadata, RefusesCutAndLengthenedArrays) {
  for (const char* name : {"unicode-1", "unicode-2", "bytes", "fortran"}) {
    const std::string bytes = fixture(name);
    for (size_t length = 6; length < bytes.size(); ++length) {
      EXPECT_EQ(refusal(bytes.substr(0, length)), "an NPY file cut short") << name << " cut at " << length;
    }
    EXPECT_TRUE(holds(refusal(bytes + "x"), "more bytes than its shape (3, 11)")) << name;
  }
}

std::string npy(const std::string& header, const std::string& data = "") {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

TEST(PathfinderMetadata, DoesNotBelieveHeaders) {
  const std::string cell = "a";
  EXPECT_EQ(parse_metadata(npy("{\"descr\":'|S1','fortran_order':False,'shape':(1,4)}\n", "ab01")).rows.size(), 1u);
  const char* const damaged[] = {"",
                                 "{",
                                 "{}",
                                 "{'descr': '|S1', 'fortran_order': False}",
                                 "{'descr': '|S1', 'fortran_order': None, 'shape': (1, 4)}",
                                 "{'descr': '|S1', 'fortran_order': False, 'shape': (1, 4)",
                                 "{'descr': '|S1', 'fortran_order': False, 'shape': (1, 4)} more",
                                 "{'descr': '|S1', 'fortran_order': False, 'shape': (1, -4)}",
                                 "{'descr': '|S1', 'fortran_order': False, 'shape': (99999999999999999999, 4)}",
                                 "{'descr': |S1', 'fortran_order': False, 'shape': (1, 4)}",
                                 "{'descr': '|S1', 'descr': '|S1', 'fortran_order': False, 'shape': (1, 4)}"};
  for (const char* header : damaged) EXPECT_EQ(refusal(npy(header, "ab01")), "damaged NPY header") << header;
  for (const char* shape : {"(18446744073709551615, 4)", "(4611686018427387904, 4)", "(1, 18446744073709551615)",
                            "(4294967296, 4294967296)", "(2, 4)"}) {
    EXPECT_EQ(refusal(npy(std::string("{'descr': '|S1', 'fortran_order': False, 'shape': ") + shape + "}", "ab01")),
              "an NPY file cut short")
        << shape;
  }
  for (const char* type : {"|S0", "<U0", "|S", "<U99999999999999999999", "|S-1", "<U1x"}) {
    const std::string header = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (0, 4)}";
    EXPECT_TRUE(holds(refusal(npy(header)), std::string("type '") + type + "'")) << refusal(npy(header));
  }
}

TEST(PathfinderMetadata, CountsBadRowsByReason) {
  const struct {
    std::string row, reason, detail;
  } cases[] = {{"imgs/0 sample_0.png 0", "wrong field count", "3 of at least four fields"},
               {"imgs/0", "wrong field count", "1 of at least four fields"},
               {"imgs/0 sample_0.png 0 2", "bad label", "label '2'"},
               {"imgs/0 sample_0.png 0 1.0", "bad label", "label '1.0'"},
               {"imgs/0 sample_0.png 0 -1", "bad label", "label '-1'"},
               {"imgs/0 sample_0.png 0 99999999999", "bad label", "label '99999999999'"},
               {"imgs/0 sample_0.png x 1", "bad index", "'x' is not the picture's number"},
               {"../0 sample_0.png 0 1", "bad path", "'../0'"},
               {"/etc passwd 0 1", "bad path", "'/etc'"},
               {"imgs//0 sample_0.png 0 1", "bad path", "'imgs//0'"},
               {"imgs/./0 sample_0.png 0 1", "bad path", "'imgs/./0'"},
               {"imgs/0/ sample_0.png 0 1", "bad path", "'imgs/0/'"},
               {"imgs/0 ../0/sample_0.png 0 1", "bad path", "'../0/sample_0.png'"},
               {"imgs/0 a/b.png 0 1", "bad path", "'a/b.png'"},
               {"imgs/0 .. 0 1", "bad path", "'..'"},
               {std::string("imgs/0 a\0b.png 0 1", 18), "bad path", "'a\\x00b.png'"},
               {"imgs/0 " + std::string(2000, 'a') + " 0 1", "bad path", "aaa...'"},
               {"imgs/0 \x1b[31m 0 1", "bad path", "'\\x1b[31m'"}};
  for (const auto& [row, reason, detail] : cases) {
    const Metadata metadata = parse_metadata("imgs/0 a.png 0 1\n" + row + "\nimgs/0 b.png 1 0\n");
    EXPECT_EQ(metadata.rows.size(), 2u) << row;
    ASSERT_EQ(metadata.bad.size(), 1u) << row;
    EXPECT_EQ(metadata.bad[0].reason, reason) << row;
    EXPECT_EQ(metadata.bad[0].number, 2);
    EXPECT_TRUE(holds(metadata.bad[0].detail, detail)) << metadata.bad[0].detail;
  }
}

std::string unicode_row(std::initializer_list<uint32_t> name) {
  std::string data;
  for (const std::u32string& field : {std::u32string(U"imgs/0"), std::u32string(name.begin(), name.end()),
                                      std::u32string(U"0"), std::u32string(U"1")}) {
    for (size_t i = 0; i < 8; ++i) {
      const uint32_t c = i < field.size() ? field[i] : 0;
      for (int shift = 0; shift < 32; shift += 8) data += static_cast<char>(c >> shift);
    }
  }
  return npy("{'descr': '<U8', 'fortran_order': False, 'shape': (1, 4), }", data);
}

TEST(PathfinderMetadata, TurnsUnicodeIntoUtf8) {
  const Metadata metadata = parse_metadata(unicode_row({'a', 0xe9, 0x20ac, 0x1f600, ' ', 'b'}));
  ASSERT_EQ(metadata.rows.size(), 1u);
  EXPECT_EQ(metadata.rows[0].file, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 b");
  for (const uint32_t none : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu, 0u}) {
    const Metadata bad = parse_metadata(unicode_row({'a', none, 'b'}));
    EXPECT_TRUE(bad.rows.empty());
    ASSERT_EQ(bad.bad.size(), 1u);
    EXPECT_EQ(bad.bad[0].reason, "bad path");
  }
}

TEST(PathfinderMetadata, OutlivesDamage) {
  const std::string good[] = {fixture("unicode-1"), fixture("bytes"), fixture("fortran"), fixture("unicode-2"),
                              "imgs/0 sample_0.png 0 1 1.0 14\nimgs/0 sample_1.png 1 0 1.0\n"};
  int whole = 0, partly = 0, refused = 0;
  for (uint64_t round = 0; round < 20'000; ++round) {
    Random random(4, RandomStream::kData, round);
    std::string bytes = good[random.below(5)];
    const uint32_t changes = 1 + random.below(3);
    for (uint32_t i = 0; i < changes; ++i) {
      // The front of an array is where most can go wrong.
      const auto size = static_cast<uint32_t>(bytes.size());
      const size_t at = random.below(random.below(2) == 0 ? std::min(size, 128u) : size);
      constexpr char kTelling[] = "\0'\"(){}[],:0129 /.\n\xff";
      switch (random.below(4)) {
        case 0: bytes[at] = static_cast<char>(random.below(256)); break;
        case 1: bytes[at] = kTelling[random.below(sizeof(kTelling) - 1)]; break;
        case 2: bytes.erase(at, random.below(3)); break;
        default: bytes.resize(random.below(8) == 0 ? at : bytes.size(), 'x'); break;
      }
      if (bytes.empty()) bytes = " ";
    }
    try {
      const Metadata metadata = parse_metadata(bytes);
      for (const MetadataRow& row : metadata.rows) {
        ASSERT_TRUE(row.label == 0 || row.label == 1);
        ASSERT_GE(row.index, 0);
        ASSERT_FALSE(holds("/" + row.path() + "/", "/../"));
        ASSERT_NE(row.path()[0], '/');
      }
      ++(metadata.bad.empty() ? whole : partly);
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(whole, 400);
  EXPECT_GT(partly, 400);
  EXPECT_GT(refused, 400);
}

}  // namespace
}  // namespace lra::pathfinder
