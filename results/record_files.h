// Finds and reads the records below the paths a user names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/record.h"

namespace lra {

struct RecordFile {
  std::filesystem::path path;
  Record record;
};

struct RecordFiles {
  std::vector<RecordFile> records;    // by path, each file once
  std::vector<std::string> left_out;  // one line each: the file and why it can't be used
};

// InputError where a path is there but is no file: a pipe or a device would be waited for.
void require_regular(const std::filesystem::path& path);

// A path is a result file, a folder searched for files named result.json, or a pattern of glob(7). InputError when one
// of them is not there.
RecordFiles read_records(const std::vector<std::string>& paths);

}  // namespace lra
