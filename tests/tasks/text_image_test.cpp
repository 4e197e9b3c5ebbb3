// Text and Image as tasks: where their data comes from, and what a request makes of it.
#include <gtest/gtest.h>

#include "datasets/statistics.h"
#include "lib/util/check.h"
#include "tasks/all_tasks.h"
#include "tests/datasets/temporary_folder.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

fs::path fixture(const std::string& name) { return fs::path(LRA_SOURCE_DIR) / "tests/datasets/data" / name; }

TaskData read(const Task& task, const fs::path& root, const DataRequest& request) {
  Log log;
  return task.read(task.locate({.path = root}), request, log, ProgressMode::kNone);
}

TEST(TextAndImageTask, NeedData) {
  for (const auto& [name, archive] :
       {std::pair("text", "aclImdb_v1.tar.gz"), std::pair("image", "cifar-10-binary.tar.gz")}) {
    const auto task = make_task("test", name);
    const auto message = message_of<UsageError>([&] { task->locate({}); });
    EXPECT_EQ(message.find("--data: needed"), 0u) << message;
    EXPECT_NE(message.find(archive), std::string::npos) << message;
    EXPECT_NE(message.find("https://"), std::string::npos) << message;
    EXPECT_NE(message_of<InputError>([&] { task->locate({.path = fixture("release")}); }), "");
  }
}

TEST(TextAndImageTask, SayWhereDataLies) {
  const auto task = make_task("test", "text");
  const DataPlace place = task->locate({.path = fixture("release") / "../text"});
  EXPECT_EQ(place.path, fixture("text/aclImdb_small.tar.gz"));
  EXPECT_EQ(place.source, place.path.string());
  EXPECT_FALSE(place.generated);
}

TEST(TextAndImageTask, TextFollowsTheRequest) {
  const auto task = make_task("test", "text");
  const TaskData tenth = read(*task, fixture("text"), {.max_length = 4000, .validation = "tenth", .pixel_tokens = {}});
  EXPECT_EQ(split_hash(*tenth.train), 0x7f03e31aa5755b24u);
  EXPECT_EQ(split_hash(*tenth.validation), 0x8d97a483b7acf9a7u);
  const TaskData test =
      read(*task, fixture("text"), {.max_length = 50, .limit_eval = 3, .validation = "test", .pixel_tokens = {}});
  EXPECT_EQ(split_hash(*test.train), 0xc35861e2db4a2f7bu);
  EXPECT_EQ(test.validation->size(), 3);
  EXPECT_EQ(split_hash(*test.validation), split_hash(*test.test));
  EXPECT_EQ(task->validation_text("test"), "test split (the originals' protocol; selection on test)");
  EXPECT_EQ(task->validation_text("tenth"), "a tenth of the training reviews of each class, by hash");
}

TEST(TextAndImageTask, ImageFollowsTheRequest) {
  const auto task = make_task("test", "image");
  const fs::path path = fixture("image/cifar-10-binary-small.tar.gz");
  const TaskData raw = read(*task, path, {.max_length = 1024, .validation = "tenth", .pixel_tokens = "raw"});
  EXPECT_EQ(split_hash(*raw.train), 0xfca2d9a6d6d1ed49u);
  EXPECT_EQ(split_hash(*raw.validation), 0xbf86a4178f1758f1u);
  const TaskData shifted = read(
      *task, path,
      {.want_train = false, .max_length = 1024, .limit_eval = 1, .validation = "tenth", .pixel_tokens = "shifted"});
  EXPECT_EQ(shifted.train, nullptr);
  EXPECT_EQ(shifted.validation->size(), 1);
  EXPECT_EQ(shifted.validation->get(0).ids[0], raw.validation->get(0).ids[0] + 1);
  EXPECT_NE(task->validation_text("tenth"), "");
}

}  // namespace
}  // namespace lra
