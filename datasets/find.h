// Finds the data of a task below a folder that a user names: the folder itself, or the only one of its kind up to four
// levels below it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "lib/util/check.h"

namespace lra {

struct DataKind {
  std::string what;   // "ListOps": for "holds more than one ListOps set"
  std::string right;  // "give the folder with …": what would be right, the end of an error line
  // Whether this folder, or this file, is a data set. Called for every folder and regular file up to four levels down:
  // look at names first. Empty: no such sets.
  std::function<bool(const std::filesystem::path& folder)> is_folder = {};
  std::function<bool(const std::filesystem::path& file)> is_file = {};
  // Why `folder`, which holds part of a set, is none ("basic_val.tsv is missing beside …"); empty: it holds nothing.
  std::function<std::string(const std::filesystem::path& folder)> problem = {};
  // Whether this folder, which is none, is not to be looked into (thousands of files, and no set among them).
  std::function<bool(const std::filesystem::path& folder)> is_closed = {};
};

// The root is a folder that can be read, without anything of the kind in it.
class NothingFound : public InputError {
 public:
  using InputError::InputError;
};

// The path of the set; not looked into further. InputError in one line where `root` is missing, may not be read, or
// holds no set (NothingFound where it holds no part of one either) or, naming two, more than one. A file named directly
// counts when is_file says so.
std::filesystem::path find_data(const std::filesystem::path& root, const DataKind& kind);

}  // namespace lra
