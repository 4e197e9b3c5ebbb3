// Lines in, whole files out.
#include "datasets/file_stream.h"

#include <gtest/gtest.h>

#include "lib/util/check.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {
namespace {

std::vector<std::string> lines_of(const std::string& bytes, size_t longest = LineReader::kLongestLine) {
  TemporaryFolder folder;
  put_file(folder / "file", bytes);
  LineReader reader(folder / "file", longest);
  std::vector<std::string> lines;
  while (reader.next()) {
    lines.push_back(reader.too_long() ? "TOO LONG" : std::string(reader.line()));
    EXPECT_EQ(reader.number(), static_cast<int64_t>(lines.size()));
  }
  EXPECT_FALSE(reader.next());
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineReader, EndsLinesAtLfAndCrlfAndTheEndOfTheFile) {
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("\n"), Lines{""});
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\r\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\r\n\r\nb\r\n"), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\rb\n"), Lines{"a\rb"});  // a CR alone ends nothing
  EXPECT_EQ(lines_of(std::string("a\0b\n\xff", 5)), (Lines{std::string("a\0b", 3), "\xff"}));
}

TEST(LineReader, JoinsLinesThatCrossItsBlocks) {
  const std::string block(300'000, 'x');
  std::string bytes;
  Lines expected;
  for (int i = 0; i < 30; ++i) {
    expected.push_back(block.substr(0, 100'000 + 7919 * i % 200'000) + std::to_string(i));
    bytes += expected.back() + (i % 2 == 0 ? "\n" : "\r\n");
  }
  expected.push_back(std::string(5'000'000, 'y'));
  bytes += expected.back();
  EXPECT_EQ(lines_of(bytes), expected);
}

TEST(LineReader, PassesOverLinesThatAreTooLong) {
  EXPECT_EQ(lines_of("12345\n123456\n1\n", 5), (Lines{"12345", "TOO LONG", "1"}));
  EXPECT_EQ(lines_of("1\n" + std::string(8'000'000, 'x') + "\n2\n" + std::string(8'000'000, 'x'), 1'000'000),
            (Lines{"1", "TOO LONG", "2", "TOO LONG"}));
}

TEST(LineReader, NamesTheFileThatCannotBeRead) {
  TemporaryFolder folder;
  const auto missing = message_of<InputError>([&] { LineReader reader(folder / "missing"); });
  EXPECT_NE(missing.find("missing: cannot be opened: No such file"), std::string::npos) << missing;
  const auto directory = message_of<InputError>([&] { LineReader(folder.path()).next(); });
  EXPECT_NE(directory.find("cannot be read: Is a directory"), std::string::npos) << directory;
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  TemporaryFolder folder;
  put_file(folder / "file", "old");
  {
    AtomicFile file(folder / "file");
    file.write("new");
    file.flush();
    EXPECT_EQ(file_bytes(folder / "file"), "old");
  }
  EXPECT_EQ(file_bytes(folder / "file"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "file.partial"));
  std::string expected;
  {
    AtomicFile file(folder / "file");
    for (int i = 0; i < 50'000; ++i) {
      const std::string piece = std::to_string(i) + std::string(static_cast<size_t>(i % 100), '.');
      file.write(piece);
      expected += piece;
    }
    const std::string large(3'000'000, 'z');
    file.write(large);
    file.write("end");
    expected += large + "end";
    file.commit();
  }
  EXPECT_EQ(file_bytes(folder / "file"), expected);
  EXPECT_FALSE(std::filesystem::exists(folder / "file.partial"));
}

TEST(AtomicFile, TakesOverWhatAKilledWriterLeft) {
  TemporaryFolder folder;
  put_file(folder / "file.partial", "a longer text that was left behind");
  AtomicFile file(folder / "file");
  file.write("new");
  file.commit();
  EXPECT_EQ(file_bytes(folder / "file"), "new");
}

TEST(AtomicFile, RefusesASecondWriterAndAMissingFolder) {
  TemporaryFolder folder;
  AtomicFile first(folder / "file");
  const auto second = message_of<InputError>([&] { AtomicFile file(folder / "file"); });
  EXPECT_NE(second.find("another process is writing it"), std::string::npos) << second;
  const auto missing = message_of<InputError>([&] { AtomicFile file(folder / "no" / "file"); });
  EXPECT_NE(missing.find("cannot be created: No such file"), std::string::npos) << missing;
}

}  // namespace
}  // namespace lra
