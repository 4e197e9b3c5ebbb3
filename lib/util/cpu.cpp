#include "lib/util/cpu.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

namespace lra {

namespace fs = std::filesystem;

namespace {

int affinity_threads() {
  // The mask grows with the machine: the call fails with EINVAL while the set is too small for its CPUs.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool got = sched_getaffinity(0, bytes, set) == 0;
    const int count = got ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (got) return std::max(1, count);
  }
  return std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
}

// Cores of "quota period" in microseconds; 0 where there is no limit.
double cores(double quota, double period) { return quota > 0 && period > 0 ? quota / period : 0.0; }

double read_number(const fs::path& path) {
  std::ifstream in(path);
  double value = 0.0;
  return in >> value ? value : 0.0;
}

double quota_v2(const fs::path& group) {
  std::ifstream in(group / "cpu.max");
  std::string quota;
  double period = 0.0;
  if (!(in >> quota >> period) || quota == "max") return 0.0;
  return cores(std::strtod(quota.c_str(), nullptr), period);
}

double quota_v1(const fs::path& group) {
  return cores(read_number(group / "cpu.cfs_quota_us"), read_number(group / "cpu.cfs_period_us"));
}

// The smallest quota of a group and its ancestors up to `top`. Inside a container the group's own path may not be
// visible below the mount; then `top` is the group.
double smallest(const fs::path& top, const std::string& group, double (*quota)(const fs::path&)) {
  double least = quota(top);
  fs::path place = top;
  for (const fs::path& part : fs::path(group).relative_path()) {
    place /= part;
    const double here = quota(place);
    if (here > 0 && (least == 0 || here < least)) least = here;
  }
  return least;
}

}  // namespace

double cgroup_cpu_quota(const fs::path& cgroup_file, const fs::path& root) {
  double least = 0.0;
  std::ifstream in(cgroup_file);
  for (std::string line; std::getline(in, line);) {  // "0::/user.slice", "4:cpu,cpuacct:/docker/…"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    std::vector<double> found;
    if (controllers.empty()) {
      found = {smallest(root, group, quota_v2), smallest(root / "unified", group, quota_v2)};
    } else {
      std::istringstream names(controllers);
      bool cpu = false;
      for (std::string name; std::getline(names, name, ',');) cpu |= name == "cpu";
      if (cpu) found = {smallest(root / "cpu", group, quota_v1), smallest(root / controllers, group, quota_v1)};
    }
    for (double quota : found) {
      if (quota > 0 && (least == 0 || quota < least)) least = quota;
    }
  }
  return least;
}

int default_threads() {
  const int threads = affinity_threads();
  const double quota = cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota <= 0) return threads;
  return std::clamp(static_cast<int>(std::min(std::ceil(quota), 1e6)), 1, threads);
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    for (const char* key : {"model name", "Hardware", "uarch"}) {
      if (line.starts_with(key)) {
        const size_t colon = line.find(':');
        const size_t start = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
        if (start != std::string::npos) return line.substr(start);
      }
    }
  }
  return "unknown";
}

bool amx_bfloat16_usable() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  static const bool usable = [] {
    constexpr long kRequestState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of Linux 5.16
    constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBfloat16) == 0 || (d & kTiles) == 0) return false;
    return syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
  }();
  return usable;
#else
  return false;
#endif
}

std::string instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("avx512bf16")) return amx_bfloat16_usable() ? "amx_bf16" : "avx512_bf16";
  if (avx512) return "avx512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
  return "sse2";
#elif defined(__aarch64__)
  return "neon";
#else
  return "other";
#endif
}

int64_t peak_rss_bytes() {
  // Not getrusage first: its maximum is inherited across exec from whatever started this program.
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace lra
