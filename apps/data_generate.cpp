// lra-data generate: a data set made by the program itself, in the layout of the Long Range Arena release.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <limits>

#include "apps/data_commands.h"
#include "datasets/listops/generator.h"
#include "datasets/listops/writer.h"
#include "lib/util/check.h"
#include "lib/util/log.h"
#include "lib/util/progress.h"
#include "lib/util/signals.h"

namespace lra {
namespace {

constexpr const char* kExamples = R"(  lra-data generate listops --out data/listops
  lra-data generate listops --out data/listops-small --train 10000 --validation 1000 --test 1000 --seed 7
)";

}  // namespace

int data_generate(int argc, char** argv) {
  cxxopts::Options options("lra-data generate", "Generates a data set: the same seed and sizes give the same files.\n");
  options.add_options()("out", "folder for basic_train.tsv, basic_val.tsv and basic_test.tsv (needed)",
                        cxxopts::value<std::string>(),
                        "DIR")("train", "training rows", cxxopts::value<std::string>()->default_value("96000"), "N")(
      "validation", "validation rows", cxxopts::value<std::string>()->default_value("2000"), "N")(
      "test", "test rows", cxxopts::value<std::string>()->default_value("2000"), "N")(
      "seed", "of the generator", cxxopts::value<std::string>()->default_value("0"), "N")(
      "threads", "no effect on the files; 0: all that this process may use",
      cxxopts::value<std::string>()->default_value("0"), "N")("force", "overwrite files that exist (default: false)");
  options.add_options("positional")("task", "", cxxopts::value<std::string>());
  options.positional_help("listops");
  options.parse_positional({"task"});
  const auto arguments = parse_data_command(options, kExamples, argc, argv);
  if (!arguments) return 0;
  require_data_task(*arguments, "generate");
  if (arguments->count("out") == 0) throw UsageError("generate: --out DIR is needed, the folder to write to");
  const std::filesystem::path out = (*arguments)["out"].as<std::string>();
  if (out.empty()) throw UsageError("generate: --out needs the name of a folder");

  listops::GeneratorOptions sizes;
  sizes.train = static_cast<int64_t>(data_number(*arguments, "train", 1, kMostRows));
  sizes.validation = static_cast<int64_t>(data_number(*arguments, "validation", 1, kMostRows));
  sizes.test = static_cast<int64_t>(data_number(*arguments, "test", 1, kMostRows));
  sizes.seed = data_number(*arguments, "seed", 0, std::numeric_limits<uint64_t>::max());
  sizes.threads = static_cast<int>(data_number(*arguments, "threads", 0, 1024));

  const auto start = std::chrono::steady_clock::now();
  install_signal_handlers();
  const StopSignals stop;
  Log log;
  Progress progress(log, progress_mode("auto"), "generate listops", 1.0);
  listops::FolderWriter writer(out, arguments->count("force") > 0);
  listops::generate(
      sizes, [&](Split split, std::span<const uint8_t> ids, int32_t label) { writer.add(split, ids, label); },
      [&](int64_t done, int64_t total) {
        if (stop.raised()) throw Error(kInterruptedExitCode, "interrupted; nothing was written");
        progress.update(done, total);
      });
  progress.finish();
  writer.commit();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << fmt::format("listops: {} training, {} validation and {} test rows, seed {}, in {} ({})\n", sizes.train,
                           sizes.validation, sizes.test, sizes.seed, out.string(), format_duration(seconds));
  return 0;
}

}  // namespace lra
