// Rounds of independent VDPBF16PS instructions; nothing where the compiler's target has none.
#include "benchmarks/fma_peak.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace lra {

__attribute__((target("avx512f,avx512bf16"))) double bfloat16_rounds(int64_t rounds, float* sink) {
  constexpr int kChains = 16;
  const __m512bh x = (__m512bh)_mm512_set1_epi32(0x3F803F80), y = (__m512bh)_mm512_set1_epi32(0x38003801);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_dpbf16_ps(sums[chain], x, y);
  }
  __m512 total = sums[0];
  for (int chain = 1; chain < kChains; ++chain) total = _mm512_add_ps(total, sums[chain]);
  *sink = _mm512_cvtss_f32(total);
  return static_cast<double>(rounds) * kChains * 4 * 16;
}

}  // namespace lra
#else
namespace lra {
double bfloat16_rounds(int64_t, float*) { return 0.0; }
}  // namespace lra
#endif
