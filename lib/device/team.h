// How a kernel is written once for the device and for the host. It is a function of a team that is called once a block:
//
//   launch(device, rows, threads, [=] LRA_KERNEL(Team& team) {
//     const float sum = team.sum(n, [=](int64_t i) { return x[team.block() * n + i]; });
//     team.for_each(n, [=](int64_t i) { x[team.block() * n + i] /= sum; });
//   });
//
// On a device a team is a thread block, and each call a phase: its elements are shared out, and nobody goes on before
// all are done. On the host it is one thread that does the elements one after another, from the last to the first, and
// so the blocks; from the first to the last where the environment has LRA_EMULATED_ORDER=forward. Code that relies on
// an order fails in one of the two. Sums are made in the order of the device's tree. What is captured is captured by
// value: threads have variables of their own, and tell each other by memory alone. Only sources that hold kernels (.cu)
// include this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "lib/device/device.h"
#include "lib/util/host_device.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define LRA_KERNEL __device__
#else
#define LRA_KERNEL
#endif

namespace lra::device {

constexpr int kWarp = 32, kMostThreads = 1024;

// Threads of a team for loops of n elements.
inline int threads_for(int64_t n) { return n <= 64 ? 32 : n <= 256 ? 64 : n <= 1024 ? 128 : 256; }

struct Add {
  template <class T>
  LRA_KERNEL T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <class T>
  LRA_KERNEL T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

#ifndef __CUDACC__
// body(i) for i < n.
template <class Body>
void in_emulated_order(int64_t n, const Body& body) {
  static const bool forward = [] {
    const char* order = std::getenv("LRA_EMULATED_ORDER");
    return order != nullptr && std::string_view(order) == "forward";
  }();
  for (int64_t i = 0; i < n; ++i) body(forward ? i : n - 1 - i);
}
#endif

class Team {
 public:
#ifdef __CUDACC__
  __device__ int64_t block() const { return blockIdx.x; }

  template <class Body>
  __device__ void for_each(int64_t n, Body body) const {
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) body(i);
    __syncthreads();
  }

 private:
  template <class T, class Combine>
  __device__ static T of_warp(T value, Combine combine) {
    for (int apart = kWarp / 2; apart > 0; apart /= 2) {
      value = combine(value, __shfl_down_sync(0xFFFFFFFFu, value, apart));
    }
    return value;
  }
  template <class T, class Body, class Combine>
  __device__ T reduce(int64_t n, T none, Body body, Combine combine) const {
    __shared__ T parts[kWarp];
    T value = none;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) value = combine(value, body(i));
    value = of_warp(value, combine);
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (warp == 0) {
      value = of_warp(lane < blockDim.x / kWarp ? parts[lane] : none, combine);
      if (lane == 0) parts[0] = value;
    }
    __syncthreads();
    value = parts[0];
    __syncthreads();  // before the next one writes them
    return value;
  }

#else
  Team(int64_t block, int threads) : block_(block), threads_(threads) {}

  int64_t block() const { return block_; }

  template <class Body>
  void for_each(int64_t n, Body body) const {
    in_emulated_order(n, body);
  }

 private:
  template <class T, class Combine>
  static T of_warp(T* lanes, Combine combine) {
    for (int apart = kWarp / 2; apart > 0; apart /= 2) {
      for (int lane = 0; lane < apart; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + apart]);
    }
    return lanes[0];
  }
  template <class T, class Body, class Combine>
  T reduce(int64_t n, T none, Body body, Combine combine) const {
    T lanes[kMostThreads], parts[kWarp];
    std::fill_n(lanes, threads_, none);
    std::fill_n(parts, kWarp, none);
    for (int64_t i = 0; i < n; ++i) lanes[i % threads_] = combine(lanes[i % threads_], body(i));
    for (int warp = 0; warp < threads_ / kWarp; ++warp) parts[warp] = of_warp(lanes + warp * kWarp, combine);
    return of_warp(parts, combine);
  }

  int64_t block_;
  int threads_;
#endif

 public:
  // Σ body(i), the same bits for every thread; of float or double.
  template <class Body>
  LRA_KERNEL auto sum(int64_t n, Body body) const {
    return reduce(n, decltype(body(int64_t{}))(0), body, Add());
  }
  // The largest body(i), or the lowest number there is where n = 0.
  template <class Body>
  LRA_KERNEL auto max(int64_t n, Body body) const {
    using T = decltype(body(int64_t{}));
    return reduce(n, std::numeric_limits<T>::lowest(), body, Larger());
  }
};

#ifdef __CUDACC__
template <class Kernel>
__global__ void __launch_bounds__(kMostThreads) run_kernel(const Kernel kernel) {
  Team team;
  kernel(team);
}
#endif

// kernel(team) for each of the blocks, in no order. threads: a multiple of 32.
template <class Kernel>
void launch(Device& device, int64_t blocks, int threads, const Kernel& kernel) {
  if (blocks == 0) return;
#ifdef __CUDACC__
  run_kernel<<<static_cast<unsigned>(blocks), threads, 0, static_cast<cudaStream_t>(device.queue())>>>(kernel);
#else
  in_emulated_order(blocks, [&](int64_t block) {
    Team team(block, threads);
    kernel(team);
  });
#endif
  device.launched();
}

// body(i) for i < n, in no order.
template <class Body>
void launch_each(Device& device, int64_t n, const Body& body) {
  constexpr int64_t kChunk = 1024;
  launch(device, (n + kChunk - 1) / kChunk, 256, [=] LRA_KERNEL(Team & team) {
    const int64_t first = team.block() * kChunk;
    team.for_each(std::min(kChunk, n - first), [=](int64_t i) { body(first + i); });
  });
}

}  // namespace lra::device
