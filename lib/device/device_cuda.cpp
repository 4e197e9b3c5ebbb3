// The first CUDA device that the process sees (CUDA_VISIBLE_DEVICES chooses): one stream of work, products by cuBLAS.
// Products that do not depend on one another are spread over streams of their own, which begin after what was queued
// before and are waited for by what comes after, so that many small ones fill the device.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <array>
#include <limits>

#include "lib/device/device.h"
#include "lib/util/check.h"

namespace lra::device {
namespace {

void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw InputError("CUDA: {}: {}", what, cudaGetErrorString(error));
}

void check_cublas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw InputError("cuBLAS: {}: {}", what, cublasGetStatusString(status));
}

cublasComputeType_t compute_type(ProductMode mode) {
  switch (mode) {
    case ProductMode::kTf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case ProductMode::kBfloat16: return CUBLAS_COMPUTE_32F_FAST_16BF;
    default: return CUBLAS_COMPUTE_32F;
  }
}

int as_int(int64_t value) {
  lra::check(value <= std::numeric_limits<int>::max(), "a product with a size of {}", value);
  return static_cast<int>(value);
}

// cuBLAS keeps columns together: its matrices are the transposes of ours, and Cᵀ = op(B)ᵀ op(A)ᵀ.
void multiply_one(cublasHandle_t handle, const Product& p, cublasComputeType_t compute) {
  const auto operation = [](Transpose t) { return t == Transpose::kNo ? CUBLAS_OP_N : CUBLAS_OP_T; };
  check_cublas(
      cublasGemmStridedBatchedEx(handle, operation(p.tb), operation(p.ta), as_int(p.n), as_int(p.m), as_int(p.k),
                                 &p.alpha, p.b.data, CUDA_R_32F, as_int(p.b.stride), p.b_next, p.a.data, CUDA_R_32F,
                                 as_int(p.a.stride), p.a_next, &p.beta, p.c.data, CUDA_R_32F, as_int(p.c.stride),
                                 p.c_next, as_int(p.count), compute, CUBLAS_GEMM_DEFAULT),
      "a product");
}

// A stream with its own cuBLAS, whose workspace products that run side by side may not share.
struct Lane {
  cudaStream_t stream = nullptr;
  cublasHandle_t handle = nullptr;
  cudaEvent_t done = nullptr;

  Lane() {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    check_cublas(cublasCreate(&handle), "its start");
    check_cublas(cublasSetStream(handle, stream), "its stream");
    check_cuda(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "an event");
  }
  ~Lane() {
    if (done != nullptr) cudaEventDestroy(done);
    if (handle != nullptr) cublasDestroy(handle);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void record() { check_cuda(cudaEventRecord(done, stream), "an event"); }
  void wait_for(const Lane& other) { check_cuda(cudaStreamWaitEvent(stream, other.done, 0), "an event"); }
};

}  // namespace

struct Device::State {
  int number;
  cublasComputeType_t compute;
  std::string name;
  Lane main;
  std::array<Lane, 4> side;
};

Device::Device(ProductMode mode, int number) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    throw InputError("--backend cuda: no CUDA device ({})",
                     error != cudaSuccess ? cudaGetErrorString(error) : "none is visible");
  }
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, number % count), "properties of a device");
  check_cuda(cudaSetDevice(number % count), "the choice of a device");
  state_ = std::make_unique<State>();
  state_->number = number % count;
  state_->compute = compute_type(mode);
  state_->name = properties.name;
}

// Any thread may be the last.
Device::~Device() {
  cudaSetDevice(state_->number);
  state_.reset();
}

namespace {
// Each thread has a current device of its own.
void choose(int number) { check_cuda(cudaSetDevice(number), "the choice of a device"); }
}  // namespace

std::string Device::name() const { return state_->name; }

void* Device::allocate(int64_t bytes) {
  choose(state_->number);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    size_t free = 0, total = 0;
    cudaGetLastError();
    cudaMemGetInfo(&free, &total);
    throw InputError("CUDA: {} has {} MiB of {} free, {} are needed: want a smaller batch_size or max_length",
                     state_->name, free >> 20, total >> 20, bytes >> 20);
  }
  check_cuda(error, "memory");
  return memory;
}

void Device::release(void* memory) noexcept {
  cudaSetDevice(state_->number);
  cudaFree(memory);
}

void Device::upload(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  choose(state_->number);
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, state_->main.stream),
             "a copy to the device");
  // Memory of the caller that may be gone on return.
  check_cuda(cudaStreamSynchronize(state_->main.stream), "a copy to the device");
}

void Device::download(void* to, const void* from, int64_t bytes) {
  choose(state_->number);
  if (bytes > 0)
    check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, state_->main.stream),
               "a copy from the device");
  check_cuda(cudaStreamSynchronize(state_->main.stream), "a copy from the device");
}

void Device::fill_zero(Matrix x) {
  if (x.rows == 0 || x.cols == 0) return;
  choose(state_->number);
  check_cuda(
      cudaMemset2DAsync(x.data, static_cast<size_t>(x.stride) * sizeof(float), 0,
                        static_cast<size_t>(x.cols) * sizeof(float), static_cast<size_t>(x.rows), state_->main.stream),
      "zeros");
}

void Device::multiply(std::span<const Product> products) {
  choose(state_->number);
  if (products.size() == 1) {
    multiply_one(state_->main.handle, products.front(), state_->compute);
    return;
  }
  if (products.empty()) return;
  state_->main.record();
  for (Lane& lane : state_->side) lane.wait_for(state_->main);
  for (size_t i = 0; i < products.size(); ++i) {
    multiply_one(state_->side[i % state_->side.size()].handle, products[i], state_->compute);
  }
  for (Lane& lane : state_->side) {
    lane.record();
    state_->main.wait_for(lane);
  }
}

void* Device::queue() const {
  choose(state_->number);
  return state_->main.stream;
}
void Device::launched(int64_t fast_memory) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaErrorInvalidValue && fast_memory > 0) {
    throw InputError(
        "--precision bfloat16: {} has less than the {} KiB of memory a multiprocessor that this takes; "
        "want float32 or tf32",
        state_->name, (fast_memory + 1023) / 1024);
  }
  check_cuda(error, "the start of a kernel");
}

}  // namespace lra::device
