#include "datasets/retrieval/unpack.h"

#include <map>
#include <system_error>
#include <vector>

#include "datasets/archive.h"
#include "datasets/file_stream.h"
#include "datasets/retrieval/folder.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra::retrieval {
namespace fs = std::filesystem;
namespace {

// A folder under a name of its own until it is complete.
class PartialFolder {
 public:
  explicit PartialFolder(const fs::path& path) : path_(path), partial_(path.string() + ".partial") {
    std::error_code error;
    fs::remove_all(partial_, error);
    if (error) throw InputError("{}: cannot be removed: {}", partial_.string(), error.message());
    make_directories(partial_);
  }
  ~PartialFolder() {
    std::error_code ignored;
    if (!committed_) fs::remove_all(partial_, ignored);
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const fs::path& partial() const { return partial_; }
  void commit() {
    std::error_code error;
    fs::rename(partial_, path_, error);
    if (error) throw InputError("{}: cannot be put in place: {}", path_.string(), error.message());
    committed_ = true;
  }

 private:
  fs::path path_, partial_;
  bool committed_ = false;
};

void copy_member(ArchiveReader& archive, const fs::path& path, const UnpackProgress& progress) {
  AtomicFile file(path);
  std::vector<char> piece(size_t{1} << 20);
  int64_t done = 0;
  while (const size_t got = archive.read(piece)) {
    file.write({piece.data(), got});
    done += static_cast<int64_t>(got);
    if (progress) progress(path.filename().string(), done, archive.size());
  }
  file.commit();
}

}  // namespace

void unpack(const fs::path& archive, const fs::path& folder, const UnpackProgress& progress) {
  PartialFolder partial(folder);
  ArchiveReader reader(archive);
  std::map<Split, std::string> found;
  // To the very end: only there is seen that the archive is whole.
  while (reader.next()) {
    const auto split = split_of(reader.name());
    if (!split) continue;
    const auto [first, added] = found.emplace(*split, reader.name());
    if (!added) {
      throw InputError("{}: holds more than one Retrieval set, {} and {}; unpack it and name one of them",
                       archive.string(), first->second, reader.name());
    }
    copy_member(reader, partial.partial() / file_name(*split), progress);
  }
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    if (!found.contains(split)) {
      throw InputError("{}: {} is missing in it; want new_aan_pairs.{{train,eval,test}}.tsv of the LRA release",
                       archive.string(), file_name(split));
    }
  }
  partial.commit();
}

}  // namespace lra::retrieval
