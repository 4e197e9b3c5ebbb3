#include "lib/util/build_info.h"

#include <fmt/format.h>

#include "lra_commit.h"  // written at build time by lib/util/commit.cmake
#include "nlohmann/json.hpp"
#include "xxhash.h"

namespace lra {

namespace {

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

}  // namespace

const BuildInfo& build_info() {
  static const BuildInfo info{LRA_VERSION,    LRA_COMMIT,         LRA_COMMIT_DIRTY != 0, compiler_name(),
                              LRA_BUILD_TYPE, LRA_ONEDNN_VERSION, LRA_TBB_VERSION,       LRA_HIGHWAY_VERSION};
  return info;
}

std::string version_text(const std::string& program) {
  const BuildInfo& info = build_info();
  std::string text = fmt::format("{} {} (commit {}{})\n", program, info.version, info.commit,
                                 info.dirty ? ", with local changes" : "");
  text += fmt::format("compiler   {}, {} build\n", info.compiler, info.build);
  if (!info.onednn.empty()) {
    text += fmt::format("libraries  oneDNN {}, TBB {}, Highway {}, ", info.onednn, info.tbb, info.highway);
  } else {
    text += "libraries  ";
  }
  text +=
      fmt::format("fmt {}.{}.{}, nlohmann_json {}.{}.{}, xxHash {}.{}.{}\n", FMT_VERSION / 10000,
                  FMT_VERSION / 100 % 100, FMT_VERSION % 100, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                  NLOHMANN_JSON_VERSION_PATCH, XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE);
  return text;
}

}  // namespace lra
