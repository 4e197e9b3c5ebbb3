// lra-data check: reads a data set whole and reports what is in it.
#include <fmt/format.h>

#include <iostream>

#include "apps/data_commands.h"
#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/log.h"
#include "tasks/all_tasks.h"

namespace lra {
namespace {

constexpr const char* kExamples = R"(  lra-data check listops data/listops
  lra-data check text aclImdb_v1.tar.gz --max-length 1000
)";

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// The rows' figures; those of the training rows are what later splits are compared with.
SplitStatistics print_split(const Task& task, const DataRequest& request, Split split, const DataSplit& rows,
                            const SplitStatistics* train) {
  SplitStatistics statistics = split_statistics(rows);
  std::cout << fmt::format("\n{}: {} rows, hash {}{}\n", split_name(split), statistics.examples, hex64(statistics.hash),
                           split == Split::kValidation ? "; " + task.validation_text(request.validation) : "");
  std::cout << fmt::format("  tokens a row    min {}, median {}, mean {:.1f}, 95 % up to {}, max {}{}\n",
                           statistics.length.min, statistics.length.median, statistics.length.mean,
                           statistics.length.p95, statistics.length.max,
                           request.pixel_tokens == "raw" ? "; black pixels are padding and not counted" : "");
  std::cout << fmt::format("  rows cut        {} ({:.1f} %)\n", rows.truncated(),
                           percent(rows.truncated(), statistics.examples));
  std::cout << "  rows a label   ";
  for (size_t label = 0; label < statistics.label_counts.size(); ++label) {
    const std::string name = label_name(task.facts().name, static_cast<int32_t>(label));
    std::cout << fmt::format("{} {}{}: {}", label == 0 ? "" : ",", label, name.empty() ? "" : " (" + name + ")",
                             statistics.label_counts[label]);
  }
  std::cout << fmt::format("; commonest {:.1f} %\n", 100.0 * statistics.majority_share);
  if (train != nullptr) std::cout << fmt::format("  also in train   {} rows\n", also_in_train(*train, statistics));
  if (rows.skipped().empty()) std::cout << "  bad rows        none\n";
  for (const Skipped& skipped : rows.skipped()) {
    std::cout << fmt::format("  bad rows        {}: {}, the first {}\n", skipped.reason, skipped.count, skipped.first);
  }
  std::cout << std::flush;
  return statistics;
}

struct BadRows {
  int64_t count = 0;
  std::string first;

  void add(const DataSplit& rows) {
    for (const Skipped& skipped : rows.skipped()) {
      if (count == 0) first = fmt::format("{} ({})", skipped.first, skipped.reason);
      count += skipped.count;
    }
  }
};

}  // namespace

int data_check(int argc, char** argv) {
  cxxopts::Options options("lra-data check",
                           "Reads a data set whole and reports its counts, lengths, classes, shared and bad rows.\n"
                           "Exit code 1 when there are bad rows.\n"
                           "TASK: listops, text, retrieval, image or pathfinder\n");
  add_reading_options(options);
  options.add_options()("limit", "first N good rows of each split only; 0: all",
                        cxxopts::value<std::string>()->default_value("0"), "N");
  const auto arguments = parse_data_command(options, kExamples, argc, argv);
  if (!arguments) return 0;
  const std::unique_ptr<Task> task = make_task("check", data_task_name(*arguments, "check", task_names()));
  const auto limit = static_cast<int64_t>(data_number(*arguments, "limit", 0, kMostRows));
  DataReading reading = data_reading(*arguments, "check", *task);
  reading.request.limit_train = reading.request.limit_eval = limit;

  const DataPlace& place = reading.place;
  std::cout << task->facts().name << " in " << place.source;
  if (place.generated) std::cout << ", unpacked into " << place.path.string();
  if (limit > 0) std::cout << fmt::format(", the first {} rows of each split", limit);
  std::cout << std::endl;
  Log log;
  const TaskData data = task->read(place, reading.request, log, progress_mode("auto"));
  BadRows bad;
  const SplitStatistics train = print_split(*task, reading.request, Split::kTrain, *data.train, nullptr);
  print_split(*task, reading.request, Split::kValidation, *data.validation, &train);
  print_split(*task, reading.request, Split::kTest, *data.test, &train);
  for (const DataSplit* rows : {data.train.get(), data.validation.get(), data.test.get()}) bad.add(*rows);
  if (bad.count > 0) {
    throw InputError("{}: {} bad row{}, the first {}", place.source, bad.count, bad.count == 1 ? "" : "s", bad.first);
  }
  return 0;
}

}  // namespace lra
