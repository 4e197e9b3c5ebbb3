// lra-data: generates, checks and shows the data sets of the Long Range Arena.
#include <iostream>
#include <string>
#include <string_view>

#include "apps/data_commands.h"
#include "lib/util/build_info.h"
#include "lib/util/check.h"
#include "lib/util/program.h"

namespace lra {
namespace {

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv);
  std::string_view summary;
};

constexpr Command kCommands[] = {
    {"generate", data_generate, "generate TASK    make a data set (listops, pathfinder)"},
    {"check", data_check, "check TASK PATH  read a data set whole; counts, lengths, classes, shared and bad rows"},
    {"show", data_show, "show TASK PATH   print or draw examples as a model gets them"},
    {"sources", data_sources, "sources [TASK]   where each data set is had, its size, licence and layout"},
    {"convert-checkpoint", data_convert,
     "convert-checkpoint IN OUT  a checkpoint of the Nystroemformer code becomes ours"},
};

constexpr std::string_view kExamples = R"(
Examples:
  lra-data generate pathfinder --out data/pathfinder --count 20000
  lra-data check text aclImdb_v1.tar.gz
)";

void print_help() {
  std::cout << "lra-data: the data sets of the Long Range Arena (listops, text, retrieval, image, pathfinder)\n\n"
               "Usage:\n  lra-data COMMAND [TASK] [OPTION...]\n\nCommands (lra-data COMMAND --help says more):\n";
  for (const Command& command : kCommands) std::cout << "  " << command.summary << '\n';
  std::cout << "\nOptions:\n  -h, --help     this text\n      --version  version, commit and libraries\n" << kExamples;
}

int run(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h") {
    print_help();
    return 0;
  }
  if (name == "--version") {
    std::cout << version_text("lra-data");
    return 0;
  }
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(argc - 1, argv + 1);
  }
  constexpr const char* kRight =
      "commands are generate, check, show, sources and convert-checkpoint (see lra-data --help)";
  if (name.empty()) throw UsageError("no command given; {}", kRight);
  throw UsageError("unknown command '{}'; {}", name, kRight);
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  return lra::run_program("lra-data", [&] { return lra::run(argc, argv); });
}
