// The CPU quota of control groups, read from made-up hierarchies.
#include "lib/util/cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace lra {
namespace {

namespace fs = std::filesystem;

class Quota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("lra-quota-" + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  double quota() { return cgroup_cpu_quota(root_ / "self", root_); }

  fs::path root_;
};

TEST_F(Quota, NoFilesNoLimit) { EXPECT_EQ(quota(), 0.0); }

TEST_F(Quota, Version2TakesTheSmallestAncestor) {
  write("self", "0::/a/b\n");
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(Quota, Version1UsesTheCpuController) {
  write("self", "3:memory:/x\n2:cpu,cpuacct:/x\n");
  write("cpu/x/cpu.cfs_quota_us", "-1\n");
  write("cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.0);
  write("cpu/x/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(Quota, InsideAContainerTheMountIsTheGroup) {
  write("self", "0::/docker/abc\n");
  write("cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST(Cpu, AnswersMakeSense) {
  EXPECT_GE(default_threads(), 1);
  EXPECT_FALSE(cpu_name().empty());
  EXPECT_FALSE(instruction_set().empty());
  EXPECT_GT(peak_rss_bytes(), 100000);
}

}  // namespace
}  // namespace lra
