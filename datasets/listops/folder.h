// Where the ListOps files of the Long Range Arena release lie: basic_train.tsv, basic_val.tsv and basic_test.tsv.
#pragma once

#include <filesystem>
#include <string>

#include "datasets/example.h"

namespace lra::listops {

// "basic_train.tsv", "basic_val.tsv", "basic_test.tsv".
std::string file_name(Split split);

// The folder with the three files: `root` itself, else the only one up to four levels below it. InputError when there
// is none, when a file of the three is missing, or when several folders would do (naming two).
std::filesystem::path find_folder(const std::filesystem::path& root);

}  // namespace lra::listops
