// Every target over its corpus, without libFuzzer: seeds and former findings stay fixed in every build. Each file is
// also read cut short at many places.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/datasets/temporary_folder.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(Bytes);
};

constexpr Target kTargets[] = {
    {"archive", archive},
    {"attention_spec", attention_spec},
    {"checkpoint", checkpoint},
    {"image_batch", image_batch},
    {"json_text", json_text},
    {"listops_packed", listops_packed},
    {"listops_rows", listops_rows},
    {"pathfinder_metadata", pathfinder_metadata},
    {"pathfinder_packed", pathfinder_packed},
    {"png_picture", png_picture},
    {"recipe_file", recipe_file},
    {"record_file", record_file},
    {"retrieval_rows", retrieval_rows},
    {"run_logs", run_logs},
    {"run_state", run_state},
    {"safetensors", safetensors},
};

std::filesystem::path corpus() { return std::filesystem::path(LRA_SOURCE_DIR) / "tests/fuzz/corpus"; }

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class FuzzReplay : public testing::TestWithParam<Target> {};

TEST_P(FuzzReplay, Corpus) {
  const auto run = [&](std::string_view bytes, const std::string& what) {
    SCOPED_TRACE(what);
    // Of a size of its own, so that the address sanitizer sees a step beyond the end.
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    EXPECT_NO_THROW(GetParam().run(exact)) << what;
  };
  const auto files = files_of(corpus() / GetParam().name);
  ASSERT_FALSE(files.empty());
  const Outcomes before = outcomes();
  run("", "no bytes");
  for (const auto& file : files) {
    const std::string bytes = file_bytes(file);
    run(bytes, file.filename().string());
    constexpr size_t kCuts = 40;
    for (size_t i = 1; i < kCuts; ++i) {
      const size_t size = bytes.size() * i / kCuts;
      run(std::string_view(bytes).substr(0, size), file.filename().string() + " cut at " + std::to_string(size));
    }
  }
  // Seeds that are all refused, or all taken, would test little.
  EXPECT_GT(outcomes().taken, before.taken);
  EXPECT_GT(outcomes().refused, before.refused);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzReplay, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

// A corpus without a target would be replayed by nobody.
TEST(FuzzCorpus, EveryFolderHasATarget) {
  for (const auto& folder : files_of(corpus())) {
    const std::string name = folder.filename().string();
    if (!std::filesystem::is_directory(folder)) continue;
    EXPECT_TRUE(std::any_of(std::begin(kTargets), std::end(kTargets), [&](const Target& t) { return t.name == name; }))
        << name;
  }
}

}  // namespace
}  // namespace lra::fuzz
