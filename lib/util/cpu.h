// The machine as a program meets it: cores it may use, name and instruction set of the CPU, memory it has taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lra {

// Cores this process may use: its affinity mask, cut by the CPU quota of its control groups (v1 and v2), a started
// core counting whole. At least 1.
int default_threads();

// The quota alone, in cores; 0 = none. `cgroup_file` lists the process's groups as /proc/self/cgroup does, `root` is
// where the hierarchies are mounted (/sys/fs/cgroup). Every ancestor of a group counts.
double cgroup_cpu_quota(const std::filesystem::path& cgroup_file, const std::filesystem::path& root);

std::string cpu_name();  // "AMD EPYC"
// Whether the processor has AMX for bfloat16 and the kernel lets this process use it, which it is asked for here.
bool amx_bfloat16_usable();
std::string instruction_set();  // amx_bf16 | avx512_bf16 | avx512 | avx2 | sse2 | neon | other
int64_t peak_rss_bytes();       // most memory this process has held at once

}  // namespace lra
