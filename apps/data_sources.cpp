// lra-data sources: where each data set is had, how large it is, its licence, and how it must lie.
#include <iostream>
#include <string_view>
#include <utility>

#include "apps/data_commands.h"
#include "tasks/all_tasks.h"

namespace lra {
namespace {

constexpr std::string_view kRelease =
    R"(The Long Range Arena release (Tay et al. 2021) holds ListOps, Retrieval and Pathfinder:
  https://storage.googleapis.com/long-range-arena/lra_release.gz
    Size      about 8 GB to download and 19 GB unpacked
    Unpack    tar -xzf lra_release.gz (the file is a tar archive in spite of its name)
    Licence   its repository, github.com/google-research/long-range-arena, is under Apache 2.0; for the texts and
              pictures none is known to be stated
  PATH of every command and --data of the programs is the place described under Layout, or a folder up to four levels
  above it, so that the release's root serves three tasks as it is.
)";

constexpr std::pair<std::string_view, std::string_view> kSources[] = {
    {"listops", R"(listops: nested list operations, 10 classes (Nangia and Bowman 2018)
  Without a download: lra-data generate listops --out data/listops
    Made by the rules of the original generator; another sample of the same distribution than the release.
    lra-listops without --data makes it once for itself.
  Original    lra_release/lra_release/listops-1000 of the release
    Size      about 660 MB
    Licence   see the release
    Rows      96,000 for training, 2,000 for validation, 2,000 for testing
  Layout      a folder with basic_train.tsv, basic_val.tsv and basic_test.tsv. Each begins with the line
              Source<TAB>Target; every further line is an expression and its value.
)"},
    {"text", R"(text: sentiment of film reviews, 2 classes (Large Movie Review Dataset, Maas et al. 2011)
  Original    https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz
    Size      84 MB
    Licence   not stated; its page asks that the paper be cited
    Rows      25,000 for training, 25,000 for testing; a tenth of the training rows becomes the validation split
  Layout      aclImdb_v1.tar.gz as it is (it is read without being unpacked), or the unpacked folder aclImdb with
              train/pos, train/neg, test/pos and test/neg, a review a file, NUMBER_RATING.txt.
)"},
    {"retrieval",
     R"(retrieval: whether two papers are related by citation, 2 classes (ACL Anthology Network, Radev et al. 2013)
  Original    lra_release/tsv_data of the release
    Size      gigabytes
    Licence   of the texts none is known to be stated
    Rows      147,086 for training, 18,090 for validation, 17,437 for testing
  Layout      a folder, or a .tar.gz, with new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv:
              label<TAB>id1<TAB>id2<TAB>text1<TAB>text2 a line, no header, label 0.0 or 1.0. The files named only_ids
              hold no texts and will not do.
)"},
    {"image", R"(image: CIFAR-10 in grey levels, 10 classes (Krizhevsky 2009)
  Original    https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, described at
              https://www.cs.toronto.edu/~kriz/cifar.html
    Size      170 MB
    Licence   not stated; its page asks that the report be cited
    Rows      50,000 for training, 10,000 for testing; the last tenth of the training rows becomes the validation split
  Layout      cifar-10-binary.tar.gz as it is, or the folder cifar-10-batches-bin with data_batch_1.bin to
              data_batch_5.bin and test_batch.bin. The Python and Matlab versions will not do.
)"},
    {"pathfinder", R"(pathfinder: whether two marked points are joined by a dashed path, 2 classes (Linsley et al. 2018)
  Without a download: lra-data generate pathfinder --out data/pathfinder
    Made by the procedure of the original generator; another sample of the same distribution than the release. Sizes
    32, 64, 128 (Path-X) and 256. lra-pathfinder without --data makes it once for itself.
  Original    lra_release/lra_release/pathfinder32, pathfinder64, pathfinder128 and pathfinder256 of the release
    Licence   of the pictures none is known to be stated
    Rows      200,000 a size and level; 8 tenths for training, 1 for validation, 1 for testing, by hash of their names
  Layout      a folder with imgs and metadata, such as pathfinder32/curv_contour_length_14: 8-bit grey PNG files
              imgs/B/sample_K.png, and lists metadata/B.npy, as text or as NPY strings. Of a root that holds several
              sets, --size and --level choose one.
)"},
};

constexpr const char* kExamples = R"(  lra-data sources
  lra-data sources text
)";

}  // namespace

int data_sources(int argc, char** argv) {
  cxxopts::Options options("lra-data sources",
                           "Where each data set is had, its size, licence and layout.\n"
                           "TASK: listops, text, retrieval, image or pathfinder (default: all)\n");
  options.add_options("positional")("task", "", cxxopts::value<std::string>());
  options.positional_help("[TASK]");
  options.parse_positional({"task"});
  const auto arguments = parse_data_command(options, kExamples, argc, argv);
  if (!arguments) return 0;
  const std::string only =
      arguments->count("task") > 0 ? data_task_name(*arguments, "sources", task_names()) : std::string();
  const bool release = only.empty() || only == "listops" || only == "retrieval" || only == "pathfinder";
  if (release) std::cout << kRelease;
  bool first = !release;
  for (const auto& [task, source] : kSources) {
    if (!only.empty() && task != only) continue;
    std::cout << (first ? "" : "\n") << source;
    first = false;
  }
  return 0;
}

}  // namespace lra
