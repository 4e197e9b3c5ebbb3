// lra-data sources: where each data set is had, how large it is, its licence, and how it must lie.
#include <iostream>

#include "apps/data_commands.h"

namespace lra {
namespace {

constexpr const char* kSources =
    R"(listops: nested list operations, 10 classes (Nangia and Bowman 2018; Long Range Arena, Tay et al. 2021)

  Without a download: lra-data generate listops --out data/listops
    Made by the rules of the original generator; another sample of the same distribution than the release.

  Original: the Long Range Arena release, https://storage.googleapis.com/long-range-arena/lra_release.gz
    Size      8 GB to download and 19 GB unpacked, with the other tasks; ListOps alone is about 660 MB
    Unpack    tar -xzf lra_release.gz (the file is a tar archive in spite of its name)
    Licence   Apache 2.0, as its repository github.com/google-research/long-range-arena
    Rows      96,000 for training, 2,000 for validation, 2,000 for testing

  Layout    a folder with basic_train.tsv, basic_val.tsv and basic_test.tsv, in the release
            lra_release/listops-1000. Give this folder, or one up to four levels above it.
            Each file begins with the line Source<TAB>Target; every further line is an expression and its value.
)";

constexpr const char* kExamples = R"(  lra-data sources
  lra-data sources | less
)";

}  // namespace

int data_sources(int argc, char** argv) {
  cxxopts::Options options("lra-data sources", "Where each data set is had, its size, licence and layout.\n");
  if (!parse_data_command(options, kExamples, argc, argv)) return 0;
  std::cout << kSources;
  return 0;
}

}  // namespace lra
