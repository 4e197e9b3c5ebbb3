// Where a Pathfinder set lies: pathfinder32/curv_contour_length_14/{imgs,metadata} as in the Long Range Arena release.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lra::pathfinder {

// The set at or up to four levels below `root`. Of several, that whose names say this size (the nearest
// folder "pathfinderSIZE" above it) and level; a name that says neither fits any. InputError where there is none, more
// than one, or where only sets of another size or level are found (naming folder and option).
std::filesystem::path find_folder(const std::filesystem::path& root, int size, const std::string& level);

// metadata/*.npy: those named by a number, in that order; where there is none, all by name (the original can gather
// them in one combined.npy). InputError where there is none at all.
std::vector<std::filesystem::path> metadata_files(const std::filesystem::path& folder);

}  // namespace lra::pathfinder
