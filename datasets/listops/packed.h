// A generated ListOps set in one file, one byte a token: a sixth of the release's text, read without parsing. For
// caches, where a program keeps the data that it generated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "datasets/byte_rows.h"
#include "datasets/listops/reader.h"

namespace lra::listops {

struct Splits {
  std::unique_ptr<ByteRows> train, validation, test;
};

// Layout, little endian: "LRALOPS1"; the number of rows of train, validation and test (uint64); the length of every row
// (uint32); the label of every row (uint8); the tokens of every row (uint8); XXH64 of all before it (uint64).
// Written beside and renamed; InputError naming the path.
void write_packed(const std::filesystem::path& path, const ByteRows& train, const ByteRows& validation,
                  const ByteRows& test);

// limit and max_length as in a text file. InputError when the file is missing, cut short, changed or of another kind.
Splits read_packed(const std::filesystem::path& path, const ReadOptions& train, const ReadOptions& validation,
                   const ReadOptions& test);

}  // namespace lra::listops
