#include "datasets/retrieval/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <future>
#include <string>
#include <string_view>
#include <utility>

#include "datasets/retrieval/folder.h"
#include "datasets/retrieval/line_scanner.h"
#include "lib/util/check.h"

namespace lra::retrieval {
namespace {

constexpr size_t kPiece = size_t{256} << 10;  // bytes read at a time while the index is made

}  // namespace

// What the lines that begin in one block of the file are.
struct PairRows::Block {
  struct Bad {
    int64_t count = 0;
    int64_t first_line = 0;  // counted from 0 at the block's first line
    std::string detail;      // of the first
  };

  std::vector<Row> rows;
  std::array<Bad, kFaults> bad;
  int64_t lines = 0;
  int64_t truncated = 0;

  // The kinds that occur, in the order of their first lines.
  std::vector<Fault> faults() const {
    std::vector<Fault> found;
    for (size_t i = 0; i < kFaults; ++i) {
      if (bad[i].count > 0) found.push_back(static_cast<Fault>(i));
    }
    std::sort(found.begin(), found.end(), [&](Fault a, Fault b) {
      return bad[static_cast<size_t>(a)].first_line < bad[static_cast<size_t>(b)].first_line;
    });
    return found;
  }
};

PairRows::PairRows(const std::filesystem::path& path, const ReadOptions& options) : file_(path), options_(options) {
  check(options.block > 0 && options.max_length >= 0 && options.limit >= 0, "impossible options");
  // Threads scan blocks ahead; blocks are taken in the order of the file, so that nothing depends on who was first.
  const auto threads = static_cast<size_t>(std::max(options.threads, 1));
  const auto launch = threads > 1 ? std::launch::async : std::launch::deferred;
  uint64_t next = 0;
  std::deque<std::pair<uint64_t, std::future<Block>>> ahead;
  const auto start = [&] {
    for (; ahead.size() < threads && next < file_.size(); next += options.block) {
      ahead.emplace_back(next, std::async(launch, [this, begin = next] { return scan(begin, 0); }));
    }
  };
  int64_t lines = 0;
  for (start(); !ahead.empty(); start()) {
    const uint64_t begin = ahead.front().first;
    Block block = ahead.front().second.get();
    ahead.pop_front();
    const int64_t left = options.limit - size();
    const bool full = options.limit > 0 && static_cast<int64_t>(block.rows.size()) >= left;
    if (full) block = scan(begin, left);  // again, without the lines behind the last row that is wanted
    append(block, lines);
    if (full) break;
    lines += block.lines;
  }
  if (rows_.empty() && !skipped_.all().empty() && skipped_.all()[0].reason == fault_reason(Fault::kIdsOnly)) {
    throw InputError(
        "{}: {} lines of three fields: this file holds ids only, the texts are needed; give the files of "
        "the LRA release whose lines are label<TAB>id1<TAB>id2<TAB>text1<TAB>text2",
        path.string(), skipped_.all()[0].count);
  }
}

// The lines that begin in the block; `most` good rows of them at most, 0 = all.
PairRows::Block PairRows::scan(uint64_t begin, int64_t most) const {
  const uint64_t end = std::min(begin + options_.block, file_.size());
  Block block;
  LineScanner scanner;
  const auto finish_line = [&] {
    RowPlace row;
    const Fault fault = scanner.finish(row);
    if (fault == Fault::kNone) {
      block.rows.push_back({row.text1 * 2 + static_cast<uint64_t>(row.label), row.length1, row.length2});
      block.truncated += cut(row.length1) < row.length1 || cut(row.length2) < row.length2 ? 1 : 0;
    } else {
      Block::Bad& bad = block.bad[static_cast<size_t>(fault)];
      if (bad.count++ == 0) {
        bad.first_line = block.lines;
        bad.detail = scanner.detail(fault);
      }
    }
    ++block.lines;
    return most == 0 || static_cast<int64_t>(block.rows.size()) < most;
  };

  // The line that reaches into this block belongs to an earlier one: begin behind the first LF, which may be the last
  // byte before the block.
  bool in_line = begin == 0;
  std::vector<char> piece(std::min<uint64_t>(kPiece, file_.size()));
  if (in_line) scanner.start(0);
  for (uint64_t at = in_line ? 0 : begin - 1; at < file_.size() && (in_line || at < end);) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(piece.size(), file_.size() - at));
    file_.read(at, {piece.data(), bytes});
    for (size_t from = 0; from < bytes;) {
      const auto* newline = static_cast<const char*>(std::memchr(piece.data() + from, '\n', bytes - from));
      const size_t to = newline != nullptr ? static_cast<size_t>(newline - piece.data()) : bytes;
      if (in_line) scanner.take({piece.data() + from, to - from});
      from = to + 1;
      if (newline == nullptr) break;
      if (in_line && !finish_line()) return block;
      if (at + from >= end) return block;
      in_line = true;
      scanner.start(at + from);
    }
    at += bytes;
  }
  if (in_line) finish_line();  // the file ends without LF
  return block;
}

void PairRows::append(const Block& block, int64_t lines_before) {
  const std::string name = file_.path().filename().string();
  for (const Fault fault : block.faults()) {
    const Block::Bad& bad = block.bad[static_cast<size_t>(fault)];
    const int64_t line = lines_before + bad.first_line + 1;
    if (options_.strict) throw InputError("{}:{}: {}", file_.path().string(), line, bad.detail);
    skipped_.add(fault_reason(fault), fmt::format("{}:{}", name, line), bad.count);
  }
  rows_.insert(rows_.end(), block.rows.begin(), block.rows.end());
  truncated_ += block.truncated;
}

uint32_t PairRows::cut(uint32_t length) const {
  return options_.max_length > 0 ? static_cast<uint32_t>(std::min<int64_t>(options_.max_length, length)) : length;
}

DataExample PairRows::get(int64_t index) const {
  check(index >= 0 && index < size(), "row {} of {}", index, size());
  const Row& row = rows_[static_cast<size_t>(index)];
  const uint64_t text1 = row.text1_and_label / 2;
  const uint64_t text2 = text1 + row.length1 + 1;
  const uint32_t length1 = cut(row.length1), length2 = cut(row.length2);
  // The first text, a tab, the second text; with one read where the first is whole.
  std::string bytes(size_t{length1} + 1 + length2, '\t');
  if (length1 == row.length1) {
    file_.read(text1, bytes);
  } else {
    file_.read(text1, {bytes.data(), length1});
    file_.read(text2 - 1, {bytes.data() + length1, size_t{1} + length2});
  }
  const std::string_view first = std::string_view(bytes).substr(0, length1);
  const std::string_view second = std::string_view(bytes).substr(length1 + 1);
  // Other rows in the place of these would most likely show by a separator in the wrong place.
  const auto has_separator = [](std::string_view text) {
    return text.find('\t') != std::string_view::npos || text.find('\n') != std::string_view::npos;
  };
  if (bytes[length1] != '\t' || has_separator(first) || has_separator(second)) {
    throw InputError("{}: was changed while it was read: its bytes {} to {} are no longer the texts of a row",
                     file_.path().string(), text1, text2 + row.length2);
  }
  DataExample example;
  const auto to_ids = [](std::string_view text, std::vector<int32_t>& ids) {
    ids.resize(text.size());
    std::transform(text.begin(), text.end(), ids.begin(), [](char c) { return static_cast<unsigned char>(c) + 1; });
  };
  to_ids(first, example.ids);
  to_ids(second, example.ids2);
  example.label = static_cast<int32_t>(row.text1_and_label % 2);
  return example;
}

std::unique_ptr<PairRows> read_split(const std::filesystem::path& folder, Split split, const ReadOptions& options) {
  const std::filesystem::path path = folder / file_name(split);
  auto rows = std::make_unique<PairRows>(path, options);
  if (split == Split::kTrain) require_training_row(*rows, path);
  return rows;
}

}  // namespace lra::retrieval
