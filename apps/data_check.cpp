// lra-data check: reads a data set whole and reports what is in it.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <memory>

#include "apps/data_commands.h"
#include "datasets/listops/folder.h"
#include "datasets/listops/reader.h"
#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra {
namespace {

constexpr const char* kExamples = R"(  lra-data check listops data/listops
  lra-data check listops lra_release --max-length 1000
)";

void print_split(Split split, const DataSplit& rows, const DataSplit* train) {
  const SplitStatistics statistics = split_statistics(rows);
  std::cout << fmt::format("\n{}: {} rows, hash {}\n", split_name(split), statistics.examples, hex64(split_hash(rows)));
  std::cout << fmt::format("  tokens a row    min {}, median {}, 95 % up to {}, max {}; {} rows cut\n",
                           statistics.length.min, statistics.length.median, statistics.length.p95,
                           statistics.length.max, rows.truncated());
  std::cout << "  rows a label   ";
  for (size_t label = 0; label < statistics.label_counts.size(); ++label) {
    std::cout << fmt::format(" {}: {}", label, statistics.label_counts[label]);
  }
  std::cout << fmt::format("; commonest {:.1f} %\n", 100.0 * statistics.majority_share);
  if (train != nullptr) std::cout << fmt::format("  also in train   {} rows\n", also_in_train(*train, rows));
  if (rows.skipped().empty()) std::cout << "  bad rows        none\n";
  for (const Skipped& skipped : rows.skipped()) {
    std::cout << fmt::format("  bad rows        {}: {}, the first {}\n", skipped.reason, skipped.count, skipped.first);
  }
}

}  // namespace

int data_check(int argc, char** argv) {
  cxxopts::Options options("lra-data check",
                           "Reads a data set whole and reports its counts, lengths, classes, shared and bad "
                           "rows.\nExit code 1 when there are bad rows.\n");
  options.add_options()("max-length", "tokens a row is cut at, as a model gets it; 0: never",
                        cxxopts::value<std::string>()->default_value("2000"), "N");
  options.add_options("positional")("task", "", cxxopts::value<std::string>())("path", "",
                                                                               cxxopts::value<std::string>());
  options.positional_help("listops PATH");
  options.parse_positional({"task", "path"});
  const auto arguments = parse_data_command(options, kExamples, argc, argv);
  if (!arguments) return 0;
  require_data_task(*arguments, "check");
  const std::string path = required_data_path(*arguments, "check");
  listops::ReadOptions reading;
  reading.max_length = static_cast<int64_t>(data_number(*arguments, "max-length", 0, kMostRows));

  const std::filesystem::path folder = listops::find_folder(path);
  std::cout << "listops in " << folder.string() << '\n';
  std::unique_ptr<DataSplit> train;
  int64_t bad = 0;
  std::string first;
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    std::unique_ptr<DataSplit> rows = listops::read_split(folder, split, reading);
    print_split(split, *rows, train.get());
    for (const Skipped& skipped : rows->skipped()) {
      if (bad == 0) first = fmt::format("{} ({})", skipped.first, skipped.reason);
      bad += skipped.count;
    }
    if (split == Split::kTrain) train = std::move(rows);
  }
  std::cout << std::flush;
  if (bad > 0) throw InputError("{}: {} bad row{}, the first {}", folder.string(), bad, bad == 1 ? "" : "s", first);
  return 0;
}

}  // namespace lra
