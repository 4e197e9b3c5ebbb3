// Every way a program can fail ends in one line and the right exit code.
#include "lib/util/program.h"

#include <gtest/gtest.h>

#include <cxxopts.hpp>
#include <new>

#include "lib/util/build_info.h"
#include "lib/util/check.h"

namespace lra {
namespace {

int run(const std::function<int()>& body, std::string& text) {
  testing::internal::CaptureStderr();
  const int exit_code = run_program("tool", body);
  text = testing::internal::GetCapturedStderr();
  return exit_code;
}

TEST(Program, ErrorsBecomeOneLineAndAnExitCode) {
  std::string text;
  EXPECT_EQ(run([] { return 0; }, text), 0);
  EXPECT_EQ(text, "");
  EXPECT_EQ(run([] { return 130; }, text), 130);
  EXPECT_EQ(run([]() -> int { throw UsageError("--x: want {}", 1); }, text), 2);
  EXPECT_EQ(text, "tool: --x: want 1\n");
  EXPECT_EQ(run([]() -> int { throw InputError("a\nb\t\x1b[31m"); }, text), 1);
  EXPECT_EQ(text, "tool: a b  [31m\n");
  // C1 controls, line separators and marks of direction; their neighbours in UTF-8 stay.
  EXPECT_EQ(one_line("a\xc2\x80"
                     "b\xc2\x9f"
                     "c\xc2\xa0\xc3\x80"),
            "a b c\xc2\xa0\xc3\x80");
  EXPECT_EQ(one_line("\u2027\u2028\u202a\u202e\u202f\u2065\u2066\u2069\u206a"), "\u2027   \u202f\u2065  \u206a");
  EXPECT_EQ(one_line("cut \xe2\x80"), "cut \xe2\x80");
  EXPECT_EQ(one_line("cut \xc2"), "cut \xc2");
  EXPECT_EQ(run([]() -> int { throw std::bad_alloc(); }, text), 1);
  EXPECT_EQ(text, "tool: out of memory\n");
  EXPECT_EQ(run([]() -> int { throw 7; }, text), 1);
  EXPECT_EQ(run(
                []() -> int {
                  check(false, "broken");
                  return 0;
                },
                text),
            1);
  EXPECT_EQ(text, "tool: internal error: broken\n");
  EXPECT_EQ(run([]() -> int { throw cxxopts::exceptions::missing_argument("steps"); }, text), 2);
  EXPECT_TRUE(text.starts_with("tool: ")) << text;
}

TEST(BuildInfo, VersionTextNamesProgramCompilerAndLibraries) {
  const std::string text = version_text("tool");
  EXPECT_TRUE(text.starts_with("tool " + build_info().version));
  for (const std::string& part :
       {build_info().commit, build_info().compiler, build_info().build, std::string("nlohmann_json")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
    EXPECT_FALSE(part.empty());
  }
}

TEST(Shown, IsOneShortPrintableLine) {
  EXPECT_EQ(shown("0.0"), "0.0");
  EXPECT_EQ(shown("a\tb\n\xff"), "a\\x09b\\x0a\\xff");
  EXPECT_EQ(shown(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(shown("abcdef", 4), "abcd...");
  EXPECT_EQ(shown("abcd", 4), "abcd");
}

}  // namespace
}  // namespace lra
