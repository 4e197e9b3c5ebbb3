// What this binary was built from and with: for --version and for the `environment` of a record.
#pragma once

#include <string>

namespace lra {

struct BuildInfo {
  std::string version;   // "0.1.0"
  std::string commit;    // "abcdef0123", taken when the program was built; "unknown" outside a git checkout
  bool dirty = false;    // tracked files differed from that commit
  std::string compiler;  // "g++ 12.2.0"
  std::string build;     // "Release"
  std::string onednn;    // "2.6.3 OMP": version and CPU runtime; empty in builds without training
  std::string tbb;       // "2021.8.0"
  std::string highway;   // "1.0.3"
};

const BuildInfo& build_info();

// Text of --version: program, version, commit, compiler, build type and libraries.
std::string version_text(const std::string& program);

}  // namespace lra
