// Numbers of a test on a device and back, and batches of given lengths.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lib/device/ops.h"
#include "tests/support/data.h"

namespace lra {

// A device, one a mode for all tests, with scratch memory.
inline device::Device& shared_device(device::ProductMode mode) {
  static std::map<device::ProductMode, device::Device> devices;
  return devices.try_emplace(mode, mode).first->second;
}

struct OnDevice {
  device::Device& device;
  device::Scratch scratch{device};
  device::Context context{device, scratch};

  explicit OnDevice(device::ProductMode mode = device::ProductMode::kFloat32) : device(shared_device(mode)) {}

  template <class T>
  T* upload(const std::vector<T>& values) {
    return scratch.upload(std::span<const T>(values));
  }
  // (rows, cols) with `gap` floats between rows that belong to nobody.
  Matrix upload(const std::vector<float>& values, int64_t rows, int64_t cols, int64_t gap = 0) {
    std::vector<float> wide(static_cast<size_t>(rows * (cols + gap)), NAN);
    for (int64_t i = 0; i < rows * cols; ++i) {
      wide[static_cast<size_t>(i / cols * (cols + gap) + i % cols)] = values[static_cast<size_t>(i)];
    }
    return {upload(wide), rows, cols, cols + gap};
  }
  std::vector<float> download(const float* data, int64_t size) {
    std::vector<float> values(static_cast<size_t>(size));
    device.download(values.data(), data, size * int64_t{sizeof(float)});
    return values;
  }
  std::vector<float> download(ConstMatrix x) {
    std::vector<float> values;
    for (int64_t i = 0; i < x.rows; ++i) {
      const std::vector<float> row = download(x.row(i), x.cols);
      values.insert(values.end(), row.begin(), row.end());
    }
    return values;
  }
};

// Sequences of these lengths: ids from 1, places with gaps.
inline std::vector<Example> examples_of(const std::vector<int64_t>& lengths, int32_t vocabulary) {
  std::vector<Example> examples;
  int32_t id = 1;
  for (const int64_t length : lengths) {
    Example& example = examples.emplace_back();
    for (int64_t i = 0; i < length; ++i) {
      example.first.ids.push_back(id);
      example.first.places.push_back(static_cast<int32_t>(i + i / 5));
      id = id % (vocabulary - 1) + 1;
    }
  }
  return examples;
}

}  // namespace lra
