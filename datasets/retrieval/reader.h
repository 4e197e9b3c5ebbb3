// Reads new_aan_pairs.{train,eval,test}.tsv of the Long Range Arena release: pairs of documents of the ACL Anthology
// Network (Radev et al. 2013), a pair a line. The files have gigabytes: they stay on disk, and memory holds only where
// each row lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "datasets/byte_rows.h"
#include "datasets/example.h"
#include "datasets/random_file.h"

namespace lra::retrieval {

struct ReadOptions {
  int64_t max_length = 4000;  // bytes each of the two texts is cut at; 0 = never
  int64_t limit = 0;          // only the first good rows of the file; 0 = all
  bool strict = false;        // a bad row is an error
  int threads = 1;            // that make the index; no effect on the result
  // Bytes of the file that a thread takes at a time; no effect on the result.
  uint64_t block = uint64_t{4} << 20;
};

// The rows of one file. The id of a byte is byte + 1. get() reads from the file, at most max_length bytes of each text;
// InputError when the file was changed in between so that no such row is there any more.
class PairRows final : public DataSplit {
 public:
  // Goes once over the file. A line is label<TAB>id1<TAB>id2<TAB>text1<TAB>text2 (datasets/retrieval/line_scanner.h);
  // others are left out and counted in skipped(). InputError naming file and line: a file that is missing or can't be
  // read, that holds ids without texts only, and with `strict` any bad row.
  PairRows(const std::filesystem::path& path, const ReadOptions& options);

  bool pair() const override { return true; }
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  DataExample get(int64_t index) const override;
  const std::vector<Skipped>& skipped() const override { return skipped_.all(); }
  int64_t truncated() const override { return truncated_; }  // rows of which either text is cut

 private:
  // 16 bytes a row: the training file of the release takes 2.4 MB.
  struct Row {
    uint64_t text1_and_label;  // offset of the first text * 2 + label
    uint32_t length1, length2;
  };
  struct Block;

  Block scan(uint64_t begin, int64_t most) const;
  void append(const Block& block, int64_t lines_before);
  uint32_t cut(uint32_t length) const;

  RandomFile file_;
  ReadOptions options_;
  std::vector<Row> rows_;
  SkippedRows skipped_;
  int64_t truncated_ = 0;
};

// The file of a split in a folder. InputError as above, and on a training file without one good row.
std::unique_ptr<PairRows> read_split(const std::filesystem::path& folder, Split split, const ReadOptions& options = {});

}  // namespace lra::retrieval
