#include "tasks/pathfinder.h"

#include "datasets/pathfinder/folder.h"
#include "datasets/pathfinder/generator.h"
#include "datasets/pathfinder/packed.h"
#include "datasets/pathfinder/reader.h"
#include "lib/util/check.h"
#include "tasks/cache.h"

namespace lra {

namespace {

// Raised whenever datasets/pathfinder/generator.h comes to draw other pictures, so that no old file in a cache is used.
constexpr int kGeneratorVersion = 1;
// Pictures of the Long Range Arena release. The seed is part of the data, not of a run.
constexpr int64_t kGeneratedCount = 200000;
constexpr uint64_t kGeneratedSeed = 0;

pathfinder::GeneratorOptions generated(const DataChoice& choice) {
  return {.count = choice.generated_count > 0 ? choice.generated_count : kGeneratedCount,
          .size = choice.size,
          .level = choice.level,
          .seed = kGeneratedSeed};
}

// As pathfinder::FolderWriter names it: the same pictures fall into the same splits, packed or in a folder.
std::string path_in_set(int64_t index) { return fmt::format("imgs/{}/sample_{}.png", index / 1000, index); }

void generate_packed(const std::filesystem::path& path, pathfinder::GeneratorOptions options, int threads, Log& log,
                     ProgressMode mode) {
  log.line(fmt::format("generating Pathfinder ({} pictures of {} x {}, level {}) into {}", options.count, options.size,
                       options.size, options.level, path.string()));
  options.threads = threads;
  pathfinder::PackedWriter writer(path, options.size, options.count);
  Progress progress(log, mode, "generate", 5.0);
  pathfinder::generate(
      options,
      [&](const pathfinder::GeneratedPicture& picture) {
        writer.add(path_in_set(picture.index), picture.label, picture.pixels);
      },
      [&](int64_t done, int64_t total) { progress.update(done, total); });
  progress.finish();
  writer.commit();
}

}  // namespace

PathfinderTask::PathfinderTask()
    : Task({.name = "pathfinder",
            .title = "Pathfinder: are two marked points joined by a dashed path? Grey pictures, 2 classes",
            .vocabulary = 512,
            .classes = 2,
            .pictures = true,
            .sized = true,
            .generates = true,
            .validations = {"given"},
            .data_help =
                "folder with imgs and metadata of the LRA release (pathfinder32/curv_contour_length_14), or up "
                "to four levels above it; --size and --level choose among several; without it data is "
                "generated once (seed 0) into the cache folder"}) {}

DataPlace PathfinderTask::locate(const DataChoice& choice) const {
  if (choice.path) {
    const std::filesystem::path folder =
        std::filesystem::absolute(pathfinder::find_folder(*choice.path, choice.size, choice.level)).lexically_normal();
    return {.path = folder, .generated = false, .source = folder.string(), .choice = choice};
  }
  const pathfinder::GeneratorOptions options = generated(choice);
  pathfinder::settings_of(options.size, options.level);  // refuses what can't be generated
  const std::string name = fmt::format("pathfinder-v{}-size-{}-level-{}-seed-{}-{}.bin", kGeneratorVersion,
                                       options.size, options.level, options.seed, options.count);
  return {.path = cache_folder() / name,
          .generated = true,
          .source = fmt::format("generated: size {}, level {}, seed {}, {}", options.size, options.level, options.seed,
                                options.count),
          .choice = choice};
}

TaskData PathfinderTask::read(const DataPlace& place, const DataRequest& request, Log& log,
                              ProgressMode progress) const {
  const int threads = request.threads;
  if (place.generated) {
    make_once(place.path, log, [&] { generate_packed(place.path, generated(place.choice), threads, log, progress); });
  }
  Progress reading(log, progress, "read pictures", 5.0);
  const pathfinder::ReadOptions options{.size = place.choice.size,
                                        .shifted = request.pixel_tokens == "shifted",
                                        .max_length = request.max_length,
                                        .limit_train = request.limit_train,
                                        .limit_eval = request.limit_eval,
                                        .strict = request.strict,
                                        .told_with = request.want_train        ? Split::kTrain
                                                     : request.want_validation ? Split::kValidation
                                                                               : Split::kTest,
                                        .threads = threads,
                                        .progress = [&](int64_t done, int64_t total) { reading.update(done, total); }};
  pathfinder::Splits splits =
      place.generated ? pathfinder::read_packed(place.path, options) : pathfinder::read_folder(place.path, options);
  reading.finish();
  TaskData data;
  if (request.want_train) data.train = std::move(splits.train);
  if (request.want_validation) data.validation = std::move(splits.validation);
  if (request.want_test) data.test = std::move(splits.test);
  return data;
}

std::string PathfinderTask::validation_text(const std::string&) const {
  return "a tenth of the pictures, by hash of their path";
}

}  // namespace lra
