// Reading Retrieval files: every shape they come in, good and bad, and files that change under the reader.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "datasets/file_stream.h"
#include "datasets/retrieval/folder.h"
#include "datasets/retrieval/line_scanner.h"
#include "datasets/retrieval/reader.h"
#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "lib/util/rng.h"
#include "tests/datasets/mutate.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::retrieval {
namespace {

namespace fs = std::filesystem;

constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};

fs::path fixture() { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data/retrieval"; }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string text_of(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += static_cast<char>(id - 1);
  return text;
}

// A training file of these bytes, and what is read from it.
class OneFile {
 public:
  explicit OneFile(const std::string& bytes) { put_file(path(), bytes); }
  fs::path path() const { return folder_ / "new_aan_pairs.train.tsv"; }
  std::unique_ptr<PairRows> read(const ReadOptions& options = {}) const {
    return read_split(folder_.path(), Split::kTrain, options);
  }
  std::string error(const ReadOptions& options = {}) const {
    return message_of<InputError>([&] { read(options); });
  }

 private:
  TemporaryFolder folder_;
};

// The fixture has lone quotes, every byte that a text can hold, both line endings, empty texts and no final newline.
// Its hashes were computed in Python (xxhash) by a reader that splits the whole file at LF and TAB.
TEST(RetrievalReader, AgreesWithAnIndependentReader) {
  const uint64_t whole[] = {0x0f6ed421047bb9f8u, 0xc26e4da86368c4e0u, 0xb4e05d7670ad7917u};
  const uint64_t cut[] = {0xa1622b04af8a32d3u, 0xc26e4da86368c4e0u, 0xad6323ed1f56b4f7u};
  const int64_t sizes[] = {5, 3, 4}, truncated[] = {3, 0, 2};
  for (int i = 0; i < 3; ++i) {
    const auto rows = read_split(fixture(), kSplits[i], {.strict = true});
    EXPECT_EQ(rows->size(), sizes[i]);
    EXPECT_TRUE(rows->pair());
    EXPECT_EQ(split_hash(*rows), whole[i]);
    EXPECT_EQ(rows->truncated(), 0);
    const auto short_rows = read_split(fixture(), kSplits[i], {.max_length = 16, .strict = true});
    EXPECT_EQ(split_hash(*short_rows), cut[i]);
    EXPECT_EQ(short_rows->truncated(), truncated[i]);
    EXPECT_EQ(split_hash(*read_split(fixture(), kSplits[i], {.max_length = 0})), whole[i]);
  }
}

TEST(RetrievalReader, QuotesAreLiteralAndTextsMayBeEmpty) {
  const auto rows = read_split(fixture(), Split::kTrain);
  const DataExample quote = rows->get(0);
  EXPECT_EQ(text_of(quote.ids), "A statistical \"parser");
  EXPECT_EQ(text_of(quote.ids2), "b'the parser'");
  EXPECT_EQ(quote.label, 1);
  const DataExample bytes = rows->get(1);
  ASSERT_EQ(bytes.ids.size(), 254u);
  EXPECT_EQ(bytes.ids.front(), 1);
  EXPECT_EQ(bytes.ids.back(), 256);
  EXPECT_EQ(bytes.label, 0);
  EXPECT_TRUE(rows->get(2).ids.empty());
  EXPECT_TRUE(rows->get(2).ids2.empty());
  EXPECT_EQ(text_of(rows->get(4).ids2), "two\"\"");
  EXPECT_THROW(rows->get(5), std::logic_error);
  EXPECT_THROW(rows->get(-1), std::logic_error);
}

TEST(RetrievalReader, TakesBothLineEndingsAndNoFinalNewline) {
  const std::string lines[] = {"0.0\ta\tb\tleft\tright", "1.0\ta\tb\t\tcaf\xc3\xa9"};
  for (const std::string ending : {"\n", "\r\n"}) {
    for (const bool final_newline : {true, false}) {
      const auto rows = OneFile(lines[0] + ending + lines[1] + (final_newline ? ending : "")).read({.strict = true});
      ASSERT_EQ(rows->size(), 2);
      EXPECT_EQ(text_of(rows->get(0).ids2), "right");
      EXPECT_EQ(text_of(rows->get(1).ids2), "caf\xc3\xa9");
    }
  }
  // A carriage return elsewhere is a byte of the text.
  EXPECT_EQ(text_of(read_split(fixture(), Split::kValidation)->get(2).ids2), "ends with CR\r");
}

struct BadLine {
  const char *line, *reason, *detail;
};

constexpr BadLine kBadLines[] = {
    {"", "blank line", "the line is blank"},
    {"\r", "blank line", "the line is blank"},
    {"1.0", "wrong field count", "1 field;"},
    {"1.0\ta\tb\tfour", "wrong field count", "4 fields; a row is label<TAB>id1<TAB>id2<TAB>text1<TAB>text2"},
    {"1.0\ta\tb\tfive\tsix\tseven", "wrong field count", "6 fields (a text may hold no tab)"},
    {"1.0\ta\tb\ttext\ttext\t", "wrong field count", "6 fields"},
    {"1.0\tP00-1\tP00-2", "ids without texts", "this file holds ids only, the texts are needed"},
    {"2.0\ta\tb\tc\td", "bad label", "the label '2.0' is not 0.0 or 1.0"},
    {"\ta\tb\tc\td", "bad label", "the label ''"},
    {"1.00\ta\tb\tc\td", "bad label", "the label '1.00'"},
    {"-0.0\ta\tb\tc\td", "bad label", "the label '-0.0'"},
    {"\"1.0\"\ta\tb\tc\td", "bad label", "the label '\"1.0\"'"},
    {"label\tid1\tid2\ttext1\ttext2", "bad label", "the label 'label'"},
    {"\x1b[31m\xff\ta\tb\tc\td", "bad label", "the label '\\x1b[31m\\xff'"},
    {"0.0000000000000000000000000001\ta\tb\tc\td", "bad label", "the label '0.0000000000000000000000...'"},
};

// Every bad line alone, between good rows.
TEST(RetrievalReader, SkipsAndNamesEveryKindOfBadLine) {
  const std::string good = "1.0\ta\tb\tx\ty\n";
  for (const BadLine& bad : kBadLines) {
    std::string bytes = good + good;
    bytes.append(bad.line).append("\n").append(good);
    const OneFile file(bytes);
    const auto rows = file.read();
    EXPECT_EQ(rows->size(), 3) << bad.line;
    ASSERT_EQ(rows->skipped().size(), 1u) << bad.line;
    EXPECT_EQ(rows->skipped()[0].reason, bad.reason);
    EXPECT_EQ(rows->skipped()[0].count, 1);
    EXPECT_EQ(rows->skipped()[0].first, "new_aan_pairs.train.tsv:3");
    const std::string message = file.error({.strict = true});
    EXPECT_TRUE(holds(message, file.path().string() + ":3: ")) << message;
    EXPECT_TRUE(holds(message, bad.detail)) << message << " lacks " << bad.detail;
    EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }), 0);
  }
}

TEST(RetrievalReader, CountsBadRowsByReasonAndNamesTheFirst) {
  std::string bytes;
  for (const BadLine& bad : kBadLines) bytes += std::string("0\ta\tb\tx\ty\n") + bad.line + "\n";
  for (const uint64_t block : {uint64_t{1}, uint64_t{40}, uint64_t{1} << 20}) {
    const auto rows = OneFile(bytes).read({.threads = 3, .block = block});
    EXPECT_EQ(rows->size(), 15);
    const std::vector<Skipped> expected = {{"blank line", 2, "new_aan_pairs.train.tsv:2"},
                                           {"wrong field count", 4, "new_aan_pairs.train.tsv:6"},
                                           {"ids without texts", 1, "new_aan_pairs.train.tsv:14"},
                                           {"bad label", 8, "new_aan_pairs.train.tsv:16"}};
    ASSERT_EQ(rows->skipped().size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(rows->skipped()[i].reason, expected[i].reason);
      EXPECT_EQ(rows->skipped()[i].count, expected[i].count);
      EXPECT_EQ(rows->skipped()[i].first, expected[i].first);
    }
  }
}

TEST(RetrievalReader, LimitKeepsTheFirstGoodRows) {
  const OneFile file("bad\n0\ta\tb\t1\t\n\n1\ta\tb\t2\t\n2.0\ta\tb\tc\td\n1\ta\tb\t3\t\nworse\n");
  for (const uint64_t block : {uint64_t{1}, uint64_t{16}, uint64_t{1} << 20}) {
    const auto two = file.read({.limit = 2, .block = block});
    ASSERT_EQ(two->size(), 2);
    EXPECT_EQ(text_of(two->get(1).ids), "2");
    ASSERT_EQ(two->skipped().size(), 2u);  // nothing behind the second good row is looked at
    EXPECT_EQ(two->skipped()[1].first, "new_aan_pairs.train.tsv:3");
    EXPECT_EQ(file.read({.limit = 3, .block = block})->skipped().size(), 3u);
    EXPECT_EQ(file.read({.limit = 100, .block = block})->size(), 3);
  }
  EXPECT_EQ(read_split(fixture(), Split::kTrain, {.limit = 4, .strict = true})->size(), 4);
}

TEST(RetrievalReader, RefusesTrainingFilesWithoutGoodRow) {
  EXPECT_TRUE(holds(OneFile("").error(), "not one good training row; it has none at all"));
  EXPECT_TRUE(holds(OneFile("\n").error(),
                    "not one good training row; the first bad one is "
                    "new_aan_pairs.train.tsv:1, blank line"));
  TemporaryFolder folder;
  put_file(folder / "new_aan_pairs.test.tsv", "");
  EXPECT_EQ(read_split(folder.path(), Split::kTest)->size(), 0);
  const auto missing = message_of<InputError>([&] { read_split(folder.path(), Split::kTrain); });
  EXPECT_TRUE(holds(missing, "new_aan_pairs.train.tsv: cannot be opened")) << missing;
  fs::create_directory(folder / "new_aan_pairs.eval.tsv");
  const auto directory = message_of<InputError>([&] { read_split(folder.path(), Split::kValidation); });
  EXPECT_TRUE(holds(directory, "not a regular file")) << directory;
  ASSERT_EQ(::mkfifo((folder / "new_aan_pairs.train.tsv").c_str(), 0600), 0);
  const auto pipe = message_of<InputError>([&] { read_split(folder.path(), Split::kTrain); });
  EXPECT_TRUE(holds(pipe, "not a regular file")) << pipe;  // and does not wait for a writer
}

TEST(RetrievalReader, SaysThatAFileHoldsIdsOnly) {
  TemporaryFolder folder;
  for (const Split split : kSplits) put_file(folder / file_name(split), "1.0\tP1\tP2\n0.0\tP1\tP3\n");
  for (const Split split : kSplits) {
    const auto message = message_of<InputError>([&] { read_split(folder.path(), split); });
    EXPECT_TRUE(holds(message, file_name(split) + ": 2 lines of three fields: this file holds ids only, the texts are "
                                                  "needed"))
        << message;
  }
}

// How a file is cut for the threads must not show. Compared with LineReader, which goes from line to line.
TEST(RetrievalReader, BlocksAndThreadsDoNotShow) {
  Random random(3, RandomStream::kData, 0);
  std::string bytes;
  for (int i = 0; i < 60; ++i) {
    for (const int field : {0, 1, 2, 3}) {
      if (field == 0) bytes += random.below(8) == 0 ? "2.0" : random.below(2) == 0 ? "1.0" : "0";
      bytes += '\t';
      bytes.append(random.below(12), static_cast<char>('a' + field));
    }
    if (random.below(10) == 0) bytes += '\n';
    bytes += random.below(2) == 0 ? "\r\n" : "\n";
  }
  const OneFile file(bytes);
  std::vector<DataExample> expected;
  int64_t bad = 0;
  LineReader lines(file.path());
  while (lines.next()) {
    std::vector<std::string> fields(1);
    for (const char c : lines.line()) c == '\t' ? void(fields.emplace_back()) : void(fields.back() += c);
    if (fields.size() != 5 || fields[0] == "2.0") {
      ++bad;
      continue;
    }
    DataExample example;
    for (const char c : fields[3]) example.ids.push_back(c + 1);
    for (const char c : fields[4]) example.ids2.push_back(c + 1);
    example.label = fields[0] == "1.0";
    expected.push_back(std::move(example));
  }
  ASSERT_GT(expected.size(), 30u);
  ASSERT_GT(bad, 5);
  const auto size = static_cast<uint64_t>(bytes.size());
  for (const uint64_t block :
       {uint64_t{1}, uint64_t{2}, uint64_t{7}, uint64_t{33}, uint64_t{1000}, size - 1, size, size + 1}) {
    for (const int threads : {1, 4}) {
      const auto rows = file.read({.threads = threads, .block = block});
      ASSERT_EQ(rows->size(), static_cast<int64_t>(expected.size())) << block;
      for (size_t i = 0; i < expected.size(); ++i) {
        const DataExample example = rows->get(static_cast<int64_t>(i));
        ASSERT_EQ(example.ids, expected[i].ids);
        ASSERT_EQ(example.ids2, expected[i].ids2);
        ASSERT_EQ(example.label, expected[i].label);
      }
      int64_t skipped = 0;
      for (const Skipped& entry : rows->skipped()) skipped += entry.count;
      EXPECT_EQ(skipped, bad);
    }
  }
}

// The middle of the line is a hole: it takes no room on disk.
TEST(RetrievalReader, SkipsALineThatIsTooLong) {
  const OneFile file("1.0\ta\tb\tx\ty\n0.0\ta\tb\tlong\t");
  const uint64_t begin = 12;
  const auto end_line_at = [&](uint64_t length) {
    fs::resize_file(file.path(), begin + length);
    std::ofstream(file.path(), std::ios::binary | std::ios::app) << "\n0.0\ta\tb\tbehind\tit\n";
  };
  end_line_at(LineScanner::kLongestLine);
  EXPECT_EQ(file.read({.threads = 2})->size(), 3);
  fs::resize_file(file.path(), begin + 20);
  end_line_at(LineScanner::kLongestLine + 1);
  const auto rows = file.read({.threads = 2});
  ASSERT_EQ(rows->size(), 2);
  EXPECT_EQ(text_of(rows->get(1).ids), "behind");
  ASSERT_EQ(rows->skipped().size(), 1u);
  EXPECT_EQ(rows->skipped()[0].reason, "line too long");
  EXPECT_EQ(rows->skipped()[0].first, "new_aan_pairs.train.tsv:2");
  EXPECT_TRUE(holds(file.error({.strict = true}), ":2: the line exceeds 64 MiB"));
}

TEST(RetrievalReader, AFileThatChangesIsAnError) {
  const std::string row = "1.0\ta\tb\tfirst\tsecond\n", text(100, 'x');
  const OneFile file(row + "0.0\ta\tb\t" + text + "\t" + text + "\n");
  const auto rows = file.read();
  const auto error = [&](int64_t index) { return message_of<InputError>([&] { rows->get(index); }); };
  EXPECT_EQ(error(0), "");
  fs::resize_file(file.path(), row.size() + 20);
  EXPECT_EQ(error(0), "");
  EXPECT_TRUE(holds(error(1), file.path().string() + ": became shorter while it was read")) << error(1);
  fs::resize_file(file.path(), 0);
  EXPECT_TRUE(holds(error(0), "became shorter")) << error(0);
  // Other rows in its place, written over it and not beside it.
  std::ofstream(file.path(), std::ios::binary) << std::string(300, '\n');
  EXPECT_TRUE(holds(error(0), "was changed while it was read")) << error(0);
  EXPECT_TRUE(holds(error(1), "was changed while it was read")) << error(1);
}

TEST(RetrievalReader, RowsAreReadFromManyThreads) {
  const auto rows = read_split(fixture(), Split::kTrain);
  std::vector<uint64_t> hashes(8);
  std::vector<std::thread> threads;
  threads.reserve(hashes.size());
  for (uint64_t& hash : hashes) threads.emplace_back([&] { hash = split_hash(*rows); });
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t hash : hashes) EXPECT_EQ(hash, 0x0f6ed421047bb9f8u);
}

// The ids in the file do not count, the label does: of four test rows one is a training row and one the pair of empty
// documents.
TEST(RetrievalReader, CountsRowsSharedByTrainAndTest) {
  const auto train = read_split(fixture(), Split::kTrain), test = read_split(fixture(), Split::kTest);
  EXPECT_EQ(also_in_train(*train, *test), 2);
  EXPECT_EQ(also_in_train(*train, *read_split(fixture(), Split::kValidation)), 0);
}

constexpr std::string_view kTelling("\t\r\n \"01.\0\xff", 10);

TEST(RetrievalReader, OutlivesFiveThousandDamagedFiles) {
  const std::string good = "1.0\tP0\tP1\tone \"text\tanother\r\n0\tx\ty\t\xff\tz\n0.0\ta\tb\tc\td";
  TemporaryFolder folder;
  int refused = 0, whole = 0, partly = 0;
  for (uint64_t round = 0; round < 5'000; ++round) {
    Random random(1, RandomStream::kData, round);
    put_file(folder / "new_aan_pairs.train.tsv", mutated(good, kTelling, random));
    try {
      const auto rows = read_split(folder.path(), Split::kTrain,
                                   {.max_length = 6, .strict = random.below(4) == 0, .block = 1 + random.below(64)});
      ASSERT_GT(rows->size(), 0);
      for (int64_t i = 0; i < rows->size(); ++i) {
        const DataExample example = rows->get(i);
        ASSERT_LE(example.ids.size(), 6u);
        ASSERT_LE(example.ids2.size(), 6u);
        ASSERT_TRUE(example.label == 0 || example.label == 1);
      }
      ++(rows->skipped().empty() ? whole : partly);
    } catch (const InputError& error) {
      ASSERT_TRUE(holds(error.what(), "new_aan_pairs.train.tsv:")) << error.what();
      ++refused;
    }
  }
  // All three ends are reached: the damage is neither too slight nor too heavy to test anything.
  EXPECT_GT(refused, 100);
  EXPECT_GT(whole, 100);
  EXPECT_GT(partly, 100);
}

}  // namespace
}  // namespace lra::retrieval
