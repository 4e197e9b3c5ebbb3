// Where the film reviews of the Large Movie Review Dataset lie (Maas et al. 2011): aclImdb_v1.tar.gz as it is had, or
// the folder that it unpacks to.
#pragma once

#include <filesystem>

namespace lra::text {

// What is needed and where it is had, the end of an error line.
inline constexpr const char* kRight =
    "give aclImdb_v1.tar.gz as it is (https://ai.stanford.edu/~amaas/data/sentiment/), the folder aclImdb that it "
    "unpacks to (with train/neg, train/pos, test/neg and test/pos), or one up to four levels above either";

// The folder with train/neg, train/pos, test/neg and test/pos, or an archive: `root` itself (any archive name), else
// the only one up to four levels below it (of archives those whose name begins with "aclImdb"). InputError where there
// is none, where a folder of the four is missing, where `root` lies inside a set (naming the set), or where there are
// several (naming two).
std::filesystem::path find_set(const std::filesystem::path& root);

}  // namespace lra::text
