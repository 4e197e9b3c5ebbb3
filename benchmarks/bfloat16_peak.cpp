// Rounds of independent VDPBF16PS or, with AMX, TDPBF16PS instructions; nothing where the compiler's target has none.
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

__attribute__((target("amx-tile,amx-bf16"))) double amx_rounds(int64_t rounds, float* sink) {
  // Palette 1: eight tiles of 16 rows of 64 bytes.
  struct alignas(64) Shapes {
    uint8_t palette = 1, rest[15] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  const Shapes shapes;
  alignas(64) float result[16 * 16];
  asm volatile("" ::"r"(&shapes) : "memory");  // GCC's intrinsic does not say that it reads all of it
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 6);
  }
  _tile_stored(0, result, 64);
  _tile_release();
  *sink = result[0];
  return static_cast<double>(rounds) * 4 * 2 * 16 * 16 * 32;
}

}  // namespace lra
#else
namespace lra {
double bfloat16_rounds(int64_t, float*) { return 0.0; }
double amx_rounds(int64_t, float*) { return 0.0; }
}  // namespace lra
#endif
