// Runs the tests, or says that there is no device and is skipped (exit code 77).
#include <gtest/gtest.h>

#include <cstdio>

#include "lib/device/device.h"
#include "lib/util/check.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    std::printf("on %s\n", lra::device::Device().name().c_str());
  } catch (const lra::InputError& error) {
    std::printf("SKIPPED: %s\n", error.what());
    return 77;
  }
  return RUN_ALL_TESTS();
}
