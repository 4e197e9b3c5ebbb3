// lra-data generate: a data set made by the program itself, in the layout of the Long Range Arena release.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <limits>
#include <set>

#include "apps/data_commands.h"
#include "datasets/listops/generator.h"
#include "datasets/listops/writer.h"
#include "datasets/pathfinder/generator.h"
#include "datasets/pathfinder/writer.h"
#include "lib/util/check.h"
#include "lib/util/log.h"
#include "lib/util/progress.h"
#include "lib/util/signals.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    R"(  lra-data generate listops --out data/listops-small --train 10000 --validation 1000 --test 1000 --seed 7
  lra-data generate pathfinder --out data/pathfinder --count 20000 --size 32 --level 14
)";

// Folders that do not exist before the work; those still empty after it are taken away again, so that an interrupted or
// failed run leaves the disk as it was.
class NewFolders {
 public:
  explicit NewFolders(const fs::path& deepest) {
    std::error_code error;
    fs::path folder = fs::absolute(deepest, error).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();  // "data/"
    while (!error && folder.has_relative_path() && fs::status(folder, error).type() == fs::file_type::not_found) {
      error.clear();
      missing_.push_back(folder);
      folder = folder.parent_path();
    }
  }
  ~NewFolders() {
    std::error_code ignored;
    for (const fs::path& folder : missing_) {
      if (fs::is_directory(folder, ignored)) fs::remove(folder, ignored);  // fails where it is not empty
    }
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<fs::path> missing_;  // the deepest first
};

cxxopts::Options make_options() {
  const auto text = [](const char* value) { return cxxopts::value<std::string>()->default_value(value); };
  cxxopts::Options options("lra-data generate",
                           "Generates a data set: the same seed and sizes give the same files.\n"
                           "TASK: listops or pathfinder\n");
  options.add_options()("out", "folder to write to (needed)", cxxopts::value<std::string>(), "DIR")(
      "seed", "of the generator", text("0"), "N")("threads", "no effect on the files; 0: all that this process may use",
                                                  text("0"),
                                                  "N")("force", "overwrite files that exist (default: false)");
  options.add_options("listops")("train", "training rows, in basic_train.tsv", text("96000"), "N")(
      "validation", "validation rows, in basic_val.tsv", text("2000"), "N")("test", "test rows, in basic_test.tsv",
                                                                            text("2000"), "N");
  options.add_options("pathfinder")("count", "pictures", text("200000"), "N")(
      "size", "side of a picture: 32, 64, 128 or 256", text("32"), "N")(
      "level", "length of the paths: baseline (6 strokes), 9 or 14", text("14"), "WORD")(
      "metadata", "text, as the release has it, or npy, as its generator writes it", text("text"), "WORD")(
      "truth", "also draw what each pixel belongs to, in a folder truth beside imgs (default: false)");
  options.add_options("positional")("task", "", cxxopts::value<std::string>());
  options.positional_help("TASK");
  options.parse_positional({"task"});
  return options;
}

// What both generators need of the command line, and how they report.
struct Work {
  const cxxopts::ParseResult& arguments;
  fs::path out;
  uint64_t seed;
  int threads;
  bool force;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  Log log = {};

  std::string duration() const {
    return format_duration(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
};

// A callback for generators: draws progress, and ends the work when the user interrupts it.
auto watch(Progress& progress, const StopSignals& stop) {
  return [&](int64_t done, int64_t total) {
    if (stop.raised()) throw Error(kInterruptedExitCode, "interrupted; nothing was written");
    progress.update(done, total);
  };
}

void generate_listops(Work& work) {
  listops::GeneratorOptions sizes;
  sizes.train = static_cast<int64_t>(data_number(work.arguments, "train", 1, kMostRows));
  sizes.validation = static_cast<int64_t>(data_number(work.arguments, "validation", 1, kMostRows));
  sizes.test = static_cast<int64_t>(data_number(work.arguments, "test", 1, kMostRows));
  sizes.seed = work.seed;
  sizes.threads = work.threads;

  install_signal_handlers();
  const StopSignals stop;
  Progress progress(work.log, progress_mode("auto"), "generate listops", 1.0);
  const NewFolders folders(work.out);
  listops::FolderWriter writer(work.out, work.force);
  listops::generate(
      sizes, [&](Split split, std::span<const uint8_t> ids, int32_t label) { writer.add(split, ids, label); },
      watch(progress, stop));
  progress.finish();
  writer.commit();
  std::cout << fmt::format("listops: {} training, {} validation and {} test rows, seed {}, in {} ({})\n", sizes.train,
                           sizes.validation, sizes.test, sizes.seed, work.out.string(), work.duration());
}

void generate_pathfinder(Work& work) {
  pathfinder::GeneratorOptions pictures;
  pictures.count = static_cast<int64_t>(data_number(work.arguments, "count", 1, kMostRows));
  pictures.size = std::stoi(data_choice(work.arguments, "size", {"32", "64", "128", "256"}));
  pictures.level = data_choice(work.arguments, "level", {"baseline", "9", "14"});
  pictures.seed = work.seed;
  pictures.threads = work.threads;
  pictures.truth = work.arguments.count("truth") > 0;
  const auto format = pathfinder::metadata_format(data_choice(work.arguments, "metadata", {"text", "npy"}));

  install_signal_handlers();
  const StopSignals stop;
  Progress progress(work.log, progress_mode("auto"), "generate pathfinder", 5.0);
  const NewFolders folders(work.out / fmt::format("pathfinder{}", pictures.size));
  pathfinder::FolderWriter writer(work.out, pictures, format, work.force);
  int64_t joined = 0;
  pathfinder::generate(
      pictures,
      [&](const pathfinder::GeneratedPicture& picture) {
        writer.add(picture);
        joined += picture.label;
      },
      watch(progress, stop));
  progress.finish();
  writer.commit();
  std::cout << fmt::format("pathfinder: {} pictures, {} of them joined, seed {}, in {} ({})\n", pictures.count, joined,
                           pictures.seed, writer.set_folder().string(), work.duration());
}

}  // namespace

int data_generate(int argc, char** argv) {
  cxxopts::Options options = make_options();
  const auto parsed = parse_data_command(options, kExamples, argc, argv, {"", "listops", "pathfinder"});
  if (!parsed) return 0;
  const cxxopts::ParseResult& arguments = *parsed;
  const std::string task = data_task_name(arguments, "generate", {"listops", "pathfinder"});
  const std::string other = task == "listops" ? "pathfinder" : "listops";
  for (const cxxopts::HelpOptionDetails& option : options.group_help(other).options) {
    const std::string& name = option.l.front();
    if (arguments.count(name) > 0) throw UsageError("--{}: is an option of generate {}, not {}", name, other, task);
  }
  if (arguments.count("out") == 0) throw UsageError("generate: --out DIR is needed, the folder to write to");
  Work work{.arguments = arguments,
            .out = arguments["out"].as<std::string>(),
            .seed = data_number(arguments, "seed", 0, std::numeric_limits<uint64_t>::max()),
            .threads = static_cast<int>(data_number(arguments, "threads", 0, 1024)),
            .force = arguments.count("force") > 0};
  if (work.out.empty()) throw UsageError("generate: --out needs the name of a folder");
  if (task == "listops") {
    generate_listops(work);
  } else {
    generate_pathfinder(work);
  }
  return 0;
}

}  // namespace lra
