// The machine's float32 fused multiply-add rate, measured on the spot: what every other speed is compared with.
#pragma once

namespace lra {

// GFLOP/s of `threads` threads at once, each running independent chains of vector FMAs in registers: the best of a few
// rounds that take about `seconds` together.
double measure_fma_peak(int threads, double seconds = 0.5);

}  // namespace lra
