// Errors of the vector exponentials over their whole range, on every instruction set.
#include <cstdint>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/lib/ops/vector_math_test.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// The order matters: these are read once a target.
#include "hwy/highway.h"
#include "lib/ops/loops-inl.h"
#include "lib/ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lra {
namespace HWY_NAMESPACE {
namespace {

void Exponentials(std::span<const float> x, float* full, float* fast) {
  namespace hn = hwy::HWY_NAMESPACE;
  for_each_lanes(static_cast<int64_t>(x.size()), [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, x.data() + i);
    hn::StoreU(vector_exp(d, v), d, full + i);
    hn::StoreU(vector_exp_negative(d, v), d, fast + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/targets.h"

namespace lra {
namespace {

HWY_EXPORT(Exponentials);

struct Results {
  std::vector<float> full, fast;
  explicit Results(const std::vector<float>& x) : full(x.size()), fast(x.size()) {
    HWY_DYNAMIC_DISPATCH(Exponentials)(x, full.data(), fast.data());
  }
};

TEST(VectorExp, ErrorOverTheWholeRange) {
  std::vector<float> x;
  for (float value = -86.9f; value < 88.72f; value += 1.37e-3f) x.push_back(value);
  for (float power = 1e-30f; power < 1.0f; power *= 1.01f) x.insert(x.end(), {power, -power});
  for (int n = -124; n <= 128; ++n) {
    // Where the reduction changes from one power of two to the next.
    const float edge = static_cast<float>((n - 0.5) * 0.69314718055994531);
    x.insert(x.end(), {std::nextafter(edge, -100.0f), edge, std::nextafter(edge, 100.0f)});
  }
  for_each_target([&](const std::string& target) {
    const Results results(x);
    double worst_ulp = 0, worst_fast = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = std::exp(static_cast<double>(x[i]));
      const float nearest = static_cast<float>(wanted);
      const double ulp = std::nextafter(nearest, std::numeric_limits<float>::infinity()) - static_cast<double>(nearest);
      worst_ulp = std::max(worst_ulp, std::abs(results.full[i] - wanted) / ulp);
      if (x[i] > 0.0f) continue;
      const double bound = 2e-7 + (target == "SSE4" || target == "SSSE3" || target == "SCALAR" ? 8e-8 : 2e-8) * -x[i];
      worst_fast = std::max(worst_fast, std::abs(results.fast[i] / wanted - 1.0) / bound);
    }
    RecordProperty(target + "_ulp", std::to_string(worst_ulp));
    RecordProperty(target + "_fast", std::to_string(worst_fast));
    EXPECT_LE(worst_ulp, 1.5) << target;
    EXPECT_LE(worst_fast, 1.0) << target;
  });
}

TEST(VectorExp, SpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0.0f,       -0.0f, -86.91f, -87.4f, -104.0f, -1e5f, -1e30f,  -3.4e38f,
                                -kInfinity, NAN,   88.73f,  100.0f, 1e5f,    1e30f, 3.4e38f, kInfinity};
  for_each_target([&](const std::string& target) {
    const Results results(x);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(results.full[i] == 1.0f && results.fast[i] == 1.0f) << target;
    for (size_t i = 2; i < 9; ++i) {
      EXPECT_TRUE(results.full[i] == 0.0f && results.fast[i] == 0.0f) << target << " at " << x[i];
    }
    EXPECT_TRUE(std::isnan(results.full[9]) && std::isnan(results.fast[9])) << target;
    for (size_t i = 10; i < x.size(); ++i) EXPECT_EQ(results.full[i], kInfinity) << target << " at " << x[i];
  });
}

}  // namespace
}  // namespace lra
#endif  // HWY_ONCE
