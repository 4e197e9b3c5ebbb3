// Where the Retrieval files of the Long Range Arena release lie: new_aan_pairs.train.tsv, .eval.tsv and .test.tsv, in a
// folder or in an archive that holds little else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "datasets/example.h"

namespace lra::retrieval {

// What is needed, the end of an error line.
inline constexpr const char* kRight =
    "give the folder with new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv of the LRA "
    "release (with texts, not ids), one up to four levels above it, or a .tar.gz of just that folder";

// "new_aan_pairs.train.tsv", "new_aan_pairs.eval.tsv", "new_aan_pairs.test.tsv".
std::string file_name(Split split);

// Whether `name` ("tsv_data/new_aan_pairs.eval.tsv") is one of the three, and which.
std::optional<Split> split_of(const std::string& name);

// Whether one of the three is among the first few members. InputError when it can't be read as an archive.
bool is_retrieval_archive(const std::filesystem::path& path);

// The folder with the three files, or the archive: `root` itself, else the only one up to four levels below it.
// InputError when there is none, when a file of the three is missing, or when several would do (naming two).
std::filesystem::path find_set(const std::filesystem::path& root);

}  // namespace lra::retrieval
