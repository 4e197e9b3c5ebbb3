// What reports are made of: escaping, pictures in base64, programs run beside ours, files of run folders.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "results/child_process.h"
#include "results/html.h"
#include "results/latex.h"
#include "results/predictions.h"
#include "results/run_logs.h"

namespace lra {
namespace {

TEST(Escaping, Latex) {
  EXPECT_EQ(latex_escaped("a_b&c%d$e#f{g}h"), "a\\_b\\&c\\%d\\$e\\#f\\{g\\}h");
  EXPECT_EQ(latex_escaped("\\~^"), "\\textbackslash{}\\textasciitilde{}\\textasciicircum{}");
  EXPECT_EQ(latex_escaped("--<é\n"), "{-}{-}\\textless{}? ");
  EXPECT_EQ(latex_name("a:b,c"), "\\texttt{a:\\allowbreak{}b,\\allowbreak{}c}");
  const std::string table = as_latex({{"H", {}, {{"name", "x"}, {{"n_1", "37.25c"}, {"b", "-0.5"}, {"c", "-"}}}, {}}});
  EXPECT_NE(table.find("\\texttt{n\\_1} & $37.25^{c}$ \\\\"), std::string::npos) << table;
  EXPECT_NE(table.find("& $-0.5$ \\\\"), std::string::npos);
  EXPECT_NE(table.find("& -- \\\\"), std::string::npos);
}

TEST(Escaping, Html) {
  EXPECT_EQ(html_escaped("<a href='x' & \"y\">\x01"), "&lt;a href=&#39;x&#39; &amp; &quot;y&quot;&gt; ");
  const std::string table = html_table({{"<n>", "x"}, {{"<r>", "37.25c"}, {"b", "-0.5"}}}, "<c>");
  EXPECT_EQ(table.find("<n>"), std::string::npos);
  EXPECT_NE(
      table.find("<th scope=\"row\">&lt;r&gt;</th><td>37.25<sup title=\"not shown to be above chance\">c</sup></td>"),
      std::string::npos)
      << table;
  EXPECT_NE(table.find("<td>−0.5</td>"), std::string::npos);
}

TEST(Escaping, MarksAreNoPartsOfNames) {
  for (const char* marked : {"37.25c", "95114!", "0.5c"}) EXPECT_TRUE(has_mark(marked)) << marked;
  for (const char* plain : {"37.25", "f17d277e2c", "1234567c", "c", "", "-", "abc", "a!"}) {
    EXPECT_FALSE(has_mark(plain)) << plain;
  }
}

TEST(Escaping, Base64) {  // RFC 4648
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}, {"\xff\xfe\x00", "//4="}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(base64(bytes), text);
}

TEST(ChildProcess, MoreThanAPipeHoldsGoesBothWays) {
  std::string input(3 << 20, 'x');
  const ChildResult result = run_child({"cat"}, input, 60);
  EXPECT_TRUE(result.found);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, input);
}

TEST(ChildProcess, ErrorsExitCodesAndPrograms) {
  const ChildResult result = run_child({"sh", "-c", "echo out; echo err >&2; exit 3"}, "", 60);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_FALSE(run_child({"no-such-program-anywhere"}, "", 60).found);
  // No shell reads an argument.
  EXPECT_EQ(run_child({"printf", "%s", "$(echo no); `echo no`"}, "", 60).output, "$(echo no); `echo no`");
}

TEST(ChildProcess, TimeIsLimited) {
  const auto start = std::chrono::steady_clock::now();
  const ChildResult result = run_child({"sleep", "100"}, "", 1);
  EXPECT_TRUE(result.found);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.errors, "no answer within 1 seconds");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

TEST(ChildProcess, NoneOutlivesItsTime) {
  for (const char* script : {"exec sleep 100", "exec sleep 100 >&- 2>&-", "exec sleep 100 <&- >&- 2>&-"}) {
    const auto start = std::chrono::steady_clock::now();
    const ChildResult result = run_child({"sh", "-c", script}, "x", 1);
    EXPECT_TRUE(result.out_of_time) << script;
    EXPECT_EQ(result.exit_code, -1) << script;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50)) << script;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << script;  // no child is left
  }
}

class RunFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) / "lra-report-test";
    std::filesystem::remove_all(folder);
    make_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void write(const char* name, const std::string& text) const { write_file_atomic(folder / name, text); }
  void expect_refused(const std::string& line) const {
    write("p.jsonl", "{\"index\":0,\"label\":1,\"predicted\":2}\n" + line + "\n");
    try {
      read_predictions(folder / "p.jsonl");
      ADD_FAILURE() << line;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("p.jsonl:2: want"), std::string::npos) << error.what();
    }
  }

  std::filesystem::path folder;
};

TEST_F(RunFolder, Predictions) {
  write("p.jsonl",
        "{\"index\":0,\"label\":1,\"predicted\":1,\"probability\":0.5}\n"
        "{\"probability\":1e-3,\"predicted\":0,\"label\":2,\"index\":4}\n");
  const Predictions p = read_predictions(folder / "p.jsonl");
  EXPECT_EQ(p.right, (std::vector<bool>{true, false}));
  write("q.jsonl", "{\"index\":0,\"label\":1,\"predicted\":3}\n{\"index\":4,\"label\":2,\"predicted\":2}");
  EXPECT_EQ(read_predictions(folder / "q.jsonl").rows_hash, p.rows_hash);  // the same rows, otherwise answered
  write("q.jsonl", "{\"index\":0,\"label\":1,\"predicted\":3}\n{\"index\":5,\"label\":2,\"predicted\":2}");
  EXPECT_NE(read_predictions(folder / "q.jsonl").rows_hash, p.rows_hash);
  for (const char* line :
       {"", "{", "[]", "{\"index\":0,\"label\":1}", "{\"index\":0,\"label\":1.5,\"predicted\":1}",
        "{\"index\":{\"label\":1},\"label\":1,\"predicted\":1}", "{\"index\":0,\"label\":1,\"predicted\":null}"}) {
    expect_refused(line);
  }
  write("p.jsonl", "");
  EXPECT_THROW(read_predictions(folder / "p.jsonl"), InputError);
}

TEST_F(RunFolder, LogsOrElseTheRecord) {
  RecordFile run{folder / "result.json", {}};
  run.record.history.push_back({"validation", 10, 1.0, 0.25, 5});
  run.record.norms = {{{"step", 10}, {"layer", 0}, {"head", 0}, {"jacobian", 2.0}},
                      {{"step", 10}, {"layer", 0}, {"head", 1}, {"jacobian", 4.0}}};
  RunLog log = read_run_log(run);
  EXPECT_EQ(log.validation, (Course{{10, 0.25}}));
  EXPECT_EQ((log.norms[{"jacobian", 0}]), (Course{{10, 3.0}}));  // mean over heads
  EXPECT_FALSE(log.has_metrics);

  write("metrics.jsonl",
        "{\"split\":\"train\",\"step\":1,\"loss\":2.5}\nnonsense\n{\"split\":\"train\",\"step\":2,\"loss\":null}\n"
        "{\"split\":\"train\",\"step\":3,\"loss\":1e308}\n"
        "{\"split\":\"validation\",\"step\":2,\"accuracy\":0.5}\n{\"split\":\"test\",\"step\":2,\"accuracy\":0.9}\n");
  write("norms.jsonl", "{\"step\":1,\"layer\":1,\"head\":0,\"jacobian\":7.0}\n");
  log = read_run_log(run);
  EXPECT_TRUE(log.has_metrics);
  EXPECT_EQ(log.loss, (Course{{1, 2.5}}));
  EXPECT_EQ(log.validation, (Course{{2, 0.5}}));
  EXPECT_EQ((log.norms[{"jacobian", 1}]), (Course{{1, 7.0}}));
  ASSERT_EQ(log.problems.size(), 1u);
  EXPECT_NE(log.problems[0].find("metrics.jsonl:2: not a line"), std::string::npos);
}

TEST_F(RunFolder, AProgramThatMayNotRunIsRefused) {
  write("program", "no program");
  const ChildResult result = run_child({(folder / "program").string()}, "", 1);
  EXPECT_TRUE(result.found);
  EXPECT_NE(result.refused.find("denied"), std::string::npos) << result.refused;
  EXPECT_FALSE(run_child({(folder / "program" / "x").string()}, "", 1).found);
}

TEST_F(RunFolder, ALogOfBrokenLinesIsGivenUp) {
  const RecordFile run{folder / "result.json", {}};
  std::string lines;
  for (int i = 0; i < 999; ++i) lines += "broken\n";
  const std::string last = "{\"split\":\"validation\",\"step\":2,\"accuracy\":0.5}\n";
  write("metrics.jsonl", lines + last);
  EXPECT_EQ(read_run_log(run).validation.size(), 1u);
  write("metrics.jsonl", last + lines + "{\n" + last);
  const RunLog log = read_run_log(run);
  EXPECT_EQ(log.validation.size(), 1u);
  ASSERT_EQ(log.problems.size(), 1u);
  EXPECT_NE(log.problems[0].find("metrics.jsonl:2: not a line of this file (1000 such in all, left out; what follows"),
            std::string::npos)
      << log.problems[0];
}

TEST_F(RunFolder, PipesAreNotWaitedFor) {
  for (const char* name : {"result.json", "metrics.jsonl", "norms.jsonl", "predictions-test.jsonl"}) {
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
  }
  const RecordFiles files = read_records({folder.string()});
  EXPECT_TRUE(files.records.empty());
  ASSERT_EQ(files.left_out.size(), 1u);
  EXPECT_NE(files.left_out[0].find("result.json: not a regular file"), std::string::npos) << files.left_out[0];
  EXPECT_EQ(read_run_log({folder / "result.json", {}}).problems.size(), 2u);
  EXPECT_THROW(read_predictions(folder / "predictions-test.jsonl"), InputError);
  EXPECT_THROW(require_regular("/dev/null"), InputError);
}

}  // namespace
}  // namespace lra
