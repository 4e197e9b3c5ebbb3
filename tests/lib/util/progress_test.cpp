// Lines on stderr and in the file, and the texts of progress.
#include "lib/util/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/util/check.h"

namespace lra {
namespace {

TEST(Progress, Durations) {
  EXPECT_EQ(format_duration(7.24), "7.2s");
  EXPECT_EQ(format_duration(59.96), "1m 00s");
  EXPECT_EQ(format_duration(185), "3m 05s");
  EXPECT_EQ(format_duration(7620), "2h 07m");
  EXPECT_EQ(format_duration(-1), "?");
}

TEST(Progress, ModesByWord) {
  EXPECT_EQ(progress_mode("bar"), ProgressMode::kBar);
  EXPECT_EQ(progress_mode("none"), ProgressMode::kNone);
  EXPECT_THROW(progress_mode("loud"), UsageError);
}

TEST(Progress, PlainLinesAndNothingElse) {
  testing::internal::CaptureStderr();
  {
    Log log;
    Progress plain(log, ProgressMode::kPlain, "train", 0.0);
    for (int i = 1; i <= 3; ++i) plain.update(i, 3);
    plain.plain_line(3, 3, "loss 1");
    Progress none(log, ProgressMode::kNone, "train", 0.0);
    none.update(1, 3);
    none.plain_line(1, 3, "x");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "train 3/3  loss 1\n");
}

TEST(Log, LinesBeforeTheFileWasOpenedAreInItAndTheBarIsNot) {
  const auto path = std::filesystem::temp_directory_path() / ("lra-log-" + std::to_string(getpid()));
  testing::internal::CaptureStderr();
  {
    Log log;
    log.line("early");
    log.open(path, false);
    log.status("[==>  ]");
    log.line("late");
    log.file_line("only\nhere");
  }
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_NE(shown.find("early\n"), std::string::npos);
  EXPECT_NE(shown.find("[==>  ]"), std::string::npos);
  EXPECT_NE(shown.find("\r\x1b[Klate\n"), std::string::npos) << "the bar makes room for the line";
  EXPECT_EQ(read_file(path), "early\nlate\nonly here\n");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lra
