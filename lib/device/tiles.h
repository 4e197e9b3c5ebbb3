// Tiles in a team's fast memory and their products by tensor cores: operands bfloat16, sums float32. On the host the
// memory is plain and full of NaN, the products plain loops. Only sources that hold kernels (.cu) include this.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/device/team.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <mma.h>
#else
#include <bit>
#endif

namespace lra::device {

#ifdef __CUDACC__
using Bf16 = __nv_bfloat16;
LRA_KERNEL inline Bf16 to_bfloat16(float x) { return __float2bfloat16_rn(x); }
#else
struct Bf16 {
  uint16_t bits;
};
inline Bf16 to_bfloat16(float x) {
  uint32_t word = std::bit_cast<uint32_t>(x);
  word += 0x7FFFu + (word >> 16 & 1u);
  return {static_cast<uint16_t>(word >> 16)};
}
inline float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
#endif

// Rows and columns are multiples of 16; rows lie 8 numbers further apart than they are long, so that they do not share
// banks. T: Bf16 or float.
template <class T>
struct Tile {
  T* data;
  int rows, cols;

  static constexpr int kGap = 8;
  LRA_BOTH static constexpr int floats(int rows, int cols) { return rows * (cols + kGap); }
  LRA_KERNEL int stride() const { return cols + kGap; }
  LRA_KERNEL T& at(int64_t row, int64_t col) const { return data[row * stride() + col]; }
};

// Hands out a team's fast memory, and adds up how much there has to be.
struct FastMemory {
  uintptr_t base = 0;  // 0: to find out how much is used
  int64_t used = 0;

  FastMemory() = default;
  LRA_KERNEL explicit FastMemory(std::byte* memory) : base(reinterpret_cast<uintptr_t>(memory)) {}

  template <class T>
  LRA_BOTH T* take(int64_t count) {
    T* data = reinterpret_cast<T*>(base + static_cast<uintptr_t>(used));
    used += (count * static_cast<int64_t>(sizeof(T)) + 127) / 128 * 128;
    return data;
  }
  template <class T>
  LRA_BOTH Tile<T> tile(int rows, int cols) {
    return {take<T>(Tile<T>::floats(rows, cols)), rows, cols};
  }
};

enum class Side { kAsIs, kTransposed };

// c (M, N) += op(a) op(b), op(a) (M, K), op(b) (K, N).
template <Side kA, Side kB>
LRA_KERNEL void multiply_add(const Team& team, const Tile<Bf16>& a, const Tile<Bf16>& b, const Tile<float>& c) {
  const int inner = kA == Side::kAsIs ? a.cols : a.rows;
#ifdef __CUDACC__
  namespace wmma = nvcuda::wmma;
  using OfA = std::conditional_t<kA == Side::kAsIs, wmma::row_major, wmma::col_major>;
  using OfB = std::conditional_t<kB == Side::kAsIs, wmma::row_major, wmma::col_major>;
  const int warps = blockDim.x / kWarp, across = c.cols / 16, tiles = c.rows / 16 * across;
  for (int t = threadIdx.x / kWarp; t < tiles; t += warps) {
    const int row = t / across * 16, col = t % across * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(sum, &c.at(row, col), c.stride(), wmma::mem_row_major);
    for (int k = 0; k < inner; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, Bf16, OfA> x;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, Bf16, OfB> y;
      wmma::load_matrix_sync(x, kA == Side::kAsIs ? &a.at(row, k) : &a.at(k, row), a.stride());
      wmma::load_matrix_sync(y, kB == Side::kAsIs ? &b.at(k, col) : &b.at(col, k), b.stride());
      wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(&c.at(row, col), sum, c.stride(), wmma::mem_row_major);
  }
  __syncthreads();
#else
  for (int row = 0; row < c.rows; ++row) {
    for (int col = 0; col < c.cols; ++col) {
      double sum = 0.0;
      for (int k = 0; k < inner; ++k) {
        const float x = to_float(kA == Side::kAsIs ? a.at(row, k) : a.at(k, row));
        const float y = to_float(kB == Side::kAsIs ? b.at(k, col) : b.at(col, k));
        sum += static_cast<double>(x) * y;
      }
      c.at(row, col) += static_cast<float>(sum);
    }
  }
#endif
}

#ifdef __CUDACC__
template <class Kernel>
__global__ void __launch_bounds__(256) run_with_memory(const Kernel kernel) {
  extern __shared__ __align__(128) std::byte fast_memory[];
  Team team;
  kernel(team, fast_memory);
}
#endif

// kernel(team, memory) for each of the blocks, by teams of 256 with that many bytes of fast memory each.
template <class Kernel>
void launch_with_memory(Device& device, int64_t blocks, int64_t bytes, const Kernel& kernel) {
  if (blocks == 0) return;
#ifdef __CUDACC__
  const auto stream = static_cast<cudaStream_t>(device.queue());
  // Where that is too many, launched() says so.
  (void)cudaFuncSetAttribute(run_with_memory<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes));
  run_with_memory<<<static_cast<unsigned>(blocks), 256, static_cast<size_t>(bytes), stream>>>(kernel);
#else
  std::vector<float> memory(static_cast<size_t>(bytes) / sizeof(float) + 32);
  in_emulated_order(blocks, [&](int64_t block) {
    std::fill(memory.begin(), memory.end(), std::numeric_limits<float>::quiet_NaN());
    Team team(block, 256);
    kernel(team, reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 127) / 128 * 128));
  });
#endif
  device.launched(bytes);
}

}  // namespace lra::device
