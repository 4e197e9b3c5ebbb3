// Reader and writer of the safetensors format (8 bytes header length, JSON header, data), float32 and int32 tensors.
// A file is checked whole before anything of it is used: header length, types, shapes, offsets without gaps or overlap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lra {

struct TensorData {
  std::string dtype = "F32";  // F32 | I32
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  int64_t elements() const;
  std::span<const float> floats() const;  // dtype F32
  std::span<const int32_t> ints() const;  // dtype I32
};

struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, TensorData> tensors;
};

// InputError naming the file and what is wrong with it.
SafetensorsFile read_safetensors(const std::filesystem::path& path);
// The same of bytes in memory; `name` stands for the file in messages.
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

struct TensorRef {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> values;
};
// Tensors are written in the order of their names; the same content gives the same bytes. Written beside and renamed.
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       std::vector<TensorRef> tensors);

}  // namespace lra
