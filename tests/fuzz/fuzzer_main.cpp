// libFuzzer's entry point for the one target that this program is built for (LRA_FUZZ_TARGET,
// tests/fuzz/CMakeLists.txt).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/target.h"

#ifndef LRA_FUZZ_TARGET  // clang-tidy looks at this file outside a fuzz build
#define LRA_FUZZ_TARGET json_text
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::LRA_FUZZ_TARGET({data, size});
  return 0;
}
