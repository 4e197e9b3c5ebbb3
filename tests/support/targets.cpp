// Choice of Highway's targets; see the header.
#include "tests/support/targets.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdint>

namespace lra {
namespace {

struct Forced {
  explicit Forced(int64_t targets) { choose(targets); }
  ~Forced() { choose(0); }
  static void choose(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
  }
};

}  // namespace

void for_each_target(const std::function<void(const std::string&)>& work) {
  // The static target is always there, whether or not Highway lists it as supported.
  const int64_t all = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
  for (int64_t rest = all; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    const Forced forced(target);
    work(hwy::TargetName(target));
  }
}

}  // namespace lra
