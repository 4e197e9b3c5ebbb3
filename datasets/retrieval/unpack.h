// Takes the three files of a Retrieval set out of an archive: rows are read at any place, which a compressed file does
// not allow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace lra::retrieval {

// `done` of `total` bytes of the member `name` are written.
using UnpackProgress = std::function<void(const std::string& name, int64_t done, int64_t total)>;

// Makes `folder` with the three files in it; it appears with all of them on disk, or not at all. The caller sees to it
// that no other does the same at the same time; what a killed one left is taken away. InputError: an archive that is
// cut short or damaged, holds a file of the three twice or lacks one; no permission, disk full.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder,
            const UnpackProgress& progress = {});

}  // namespace lra::retrieval
