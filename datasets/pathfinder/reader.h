// Reads a Pathfinder set as the Long Range Arena release has it: a folder of PNG files and lists of their names.
#pragma once

#include <filesystem>

#include "datasets/pathfinder/pictures.h"

namespace lra::pathfinder {

// All pictures are looked at: one that is missing, unreadable or not a size x size 8-bit grey PNG, and a list's row
// that is bad or names a picture again, is left out and counted in skipped(). InputError naming the file: a list that
// can't be read as a whole, no good training picture, and with `strict` the first bad row or picture in the lists'
// order.
Splits read_folder(const std::filesystem::path& folder, const ReadOptions& options);

}  // namespace lra::pathfinder
