#include "tasks/retrieval.h"

#include <algorithm>

#include "datasets/archive.h"
#include "datasets/random_file.h"
#include "datasets/retrieval/folder.h"
#include "datasets/retrieval/reader.h"
#include "datasets/retrieval/unpack.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "tasks/cache.h"

namespace lra {

namespace fs = std::filesystem;

namespace {

// Of the unpacked files' layout in the cache.
constexpr int kFormat = 1;

fs::path unpacked_folder(uint64_t archive_hash) {
  return cache_folder() / fmt::format("retrieval-v{}-{}", kFormat, hex64(archive_hash));
}

void unpack_once(const fs::path& archive, const fs::path& folder, Log& log, ProgressMode mode) {
  make_once(folder, log, [&] {
    log.line(fmt::format("unpacking {} into {}", archive.string(), folder.string()));
    Progress progress(log, mode, "unpack", 5.0);
    retrieval::unpack(archive, folder, [&](const std::string& name, int64_t done, int64_t total) {
      progress.update(done, total, name);
    });
    progress.finish();
  });
}

}  // namespace

RetrievalTask::RetrievalTask()
    : Task({.name = "retrieval",
            .title = "Retrieval: do two documents cite each other, two texts of up to 4000 bytes, 2 classes",
            .vocabulary = 512,
            .classes = 2,
            .pair = true,
            .validations = {"given"},
            .data_help =
                "folder with new_aan_pairs.{train,eval,test}.tsv of the LRA release (with texts, not ids), up to "
                "four levels above it, or a .tar.gz of it, which is unpacked once into the cache folder"}) {}

DataPlace RetrievalTask::locate(const DataChoice& choice) const {
  if (!choice.path) {
    throw UsageError(
        "--data: needed, Retrieval has no generator; {}. The texts are of the ACL Anthology Network, the pairs of "
        "https://github.com/google-research/long-range-arena",
        retrieval::kRight);
  }
  const fs::path path = fs::absolute(retrieval::find_set(*choice.path)).lexically_normal();
  if (fs::is_directory(path)) {
    return {.path = path, .generated = false, .source = path.string(), .choice = choice};
  }
  return {.path = unpacked_folder(hash_file(path)), .generated = true, .source = path.string(), .choice = choice};
}

TaskData RetrievalTask::read(const DataPlace& place, const DataRequest& request, Log& log,
                             ProgressMode progress) const {
  if (place.generated) unpack_once(place.source, place.path, log, progress);
  const retrieval::ReadOptions train{.max_length = request.max_length,
                                     .limit = request.limit_train,
                                     .strict = request.strict,
                                     .threads = request.threads};
  retrieval::ReadOptions eval = train;
  eval.limit = request.limit_eval;
  TaskData data;
  if (request.want_train) data.train = retrieval::read_split(place.path, Split::kTrain, train);
  if (request.want_validation) data.validation = retrieval::read_split(place.path, Split::kValidation, eval);
  if (request.want_test) data.test = retrieval::read_split(place.path, Split::kTest, eval);
  return data;
}

std::string RetrievalTask::validation_text(const std::string&) const { return "given split"; }

}  // namespace lra
