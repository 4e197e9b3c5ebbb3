#include "tasks/listops.h"

#include "datasets/listops/folder.h"
#include "datasets/listops/generator.h"
#include "datasets/listops/packed.h"
#include "datasets/listops/reader.h"
#include "datasets/listops/tokens.h"
#include "lib/util/check.h"
#include "tasks/cache.h"

namespace lra {

namespace {

// The sizes of the Long Range Arena release. The seed is part of the data, not of a run.
const listops::GeneratorOptions kGenerated{.train = 96000, .validation = 2000, .test = 2000, .seed = 0};

void generate_packed(const std::filesystem::path& path, int threads, Log& log, ProgressMode mode) {
  log.line(fmt::format("generating ListOps ({} training, {} validation, {} test expressions) into {}", kGenerated.train,
                       kGenerated.validation, kGenerated.test, path.string()));
  ByteRows train, validation, test;
  listops::GeneratorOptions options = kGenerated;
  options.threads = threads;
  Progress progress(log, mode, "generate", 5.0);
  listops::generate(
      options,
      [&](Split split, std::span<const uint8_t> ids, int32_t label) {
        (split == Split::kTrain ? train : split == Split::kValidation ? validation : test).append(ids, label);
      },
      [&](int64_t done, int64_t total) { progress.update(done, total); });
  progress.finish();
  listops::write_packed(path, train, validation, test);
}

}  // namespace

ListopsTask::ListopsTask()
    : Task({.name = "listops",
            .title = "ListOps: the value of nested list operations, up to 2000 tokens, 10 classes",
            .vocabulary = 32,
            .classes = 10,
            .generates = true,
            .validations = {"given"},
            .data_help = "folder with basic_{train,val,test}.tsv of the LRA release, or up to four levels above it; "
                         "without it data is generated once (seed 0) into the cache folder"}) {}

DataPlace ListopsTask::locate(const DataChoice& choice) const {
  if (choice.path) {
    const std::filesystem::path folder =
        std::filesystem::absolute(listops::find_folder(*choice.path)).lexically_normal();
    return {.path = folder, .generated = false, .source = folder.string(), .choice = choice};
  }
  const std::string name = fmt::format("listops-seed-{}-{}-{}-{}.bin", kGenerated.seed, kGenerated.train,
                                       kGenerated.validation, kGenerated.test);
  return {.path = cache_folder() / name,
          .generated = true,
          .source = fmt::format("generated: seed {}, {}/{}/{}", kGenerated.seed, kGenerated.train,
                                kGenerated.validation, kGenerated.test)};
}

TaskData ListopsTask::read(const DataPlace& place, const DataRequest& request, Log& log, ProgressMode progress) const {
  const listops::ReadOptions train{
      .max_length = request.max_length, .limit = request.limit_train, .strict = request.strict};
  listops::ReadOptions eval = train;
  eval.limit = request.limit_eval;
  TaskData data;
  if (place.generated) {
    make_once(place.path, log, [&] { generate_packed(place.path, request.threads, log, progress); });
    listops::Splits splits = listops::read_packed(place.path, train, eval, eval);
    if (request.want_train) data.train = std::move(splits.train);
    if (request.want_validation) data.validation = std::move(splits.validation);
    if (request.want_test) data.test = std::move(splits.test);
    return data;
  }
  if (request.want_train) data.train = listops::read_split(place.path, Split::kTrain, train);
  if (request.want_validation) data.validation = listops::read_split(place.path, Split::kValidation, eval);
  if (request.want_test) data.test = listops::read_split(place.path, Split::kTest, eval);
  return data;
}

std::string ListopsTask::validation_text(const std::string&) const { return "given split"; }

std::string ListopsTask::text(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (!text.empty()) text += ' ';
    text += listops::token_text(static_cast<uint8_t>(id));
  }
  return text;
}

}  // namespace lra
