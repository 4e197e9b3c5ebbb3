// Reads the files of the Long Range Arena release: a line `Source<TAB>Target`, then one expression and its value a
// line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "datasets/byte_rows.h"

namespace lra::listops {

struct ReadOptions {
  int64_t max_length = 2000;  // tokens a row is cut at; 0 = never
  int64_t limit = 0;          // only the first good rows of the file; 0 = all
  bool strict = false;        // a bad row is an error
};

// Rows with another number of fields, a label that is not a digit, an unknown token, no whole expression, or a label
// that is not the value of the uncut expression are left out and counted in skipped(). InputError naming file and line:
// a missing or unreadable file, another header, a training file without one good row, and with `strict` any bad row.
std::unique_ptr<ByteRows> read_split(const std::filesystem::path& folder, Split split, const ReadOptions& options = {});

}  // namespace lra::listops
