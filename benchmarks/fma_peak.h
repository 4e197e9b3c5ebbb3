// The machine's fused multiply-add rates, measured on the spot: what every other speed is compared with.
#pragma once

#include <cstdint>

namespace lra {

// GFLOP/s in float32 of `threads` threads at once, each running independent chains of vector FMAs in registers: the
// best of a few rounds that take about `seconds` together.
double measure_fma_peak(int threads, double seconds = 0.5);
// The same of bfloat16 products summed in float32 (TDPBF16PS of AMX, else VDPBF16PS); 0 where bfloat16_supported() is
// false.
double measure_bfloat16_peak(int threads, double seconds = 0.5);

// One thread's rounds of VDPBF16PS and of TDPBF16PS; returns the floating-point operations done and keeps the sum
// alive.
double bfloat16_rounds(int64_t rounds, float* sink);
double amx_rounds(int64_t rounds, float* sink);

}  // namespace lra
