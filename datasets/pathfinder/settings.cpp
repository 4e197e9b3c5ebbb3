#include "datasets/pathfinder/settings.h"

#include <algorithm>

#include "lib/util/check.h"

namespace lra::pathfinder {
namespace {

int contour_length_of(std::string_view level) {
  if (level == "baseline") return 6;
  if (level == "9") return 9;
  if (level == "14") return 14;
  throw UsageError("Pathfinder has no level '{}'; baseline, 9 or 14", level);
}

}  // namespace

Settings settings_of(int size, std::string_view level) {
  const int contour = contour_length_of(level);
  const int distractor = contour / 3;
  Settings settings;  // those of 32
  int distractor_strokes = 20;
  switch (size) {
    case 32:
      // Read off 1,500 of the original's pictures. Although it draws any degree, its search for a free place lets only
      // those through whose head is, rounded up, one row and one column before the tail.
      settings.first_strokes = {{210, 221, 14, 16, 15, 16}, {222, 240, 14, 16, 14, 16}};
      break;
    case 64:
      settings = {.margin = 1,
                  .stroke_length = 5,
                  .stroke_width = 1.0,
                  .marker_radius = 2.5,
                  .seed_distance = 12,
                  .continuity = 1.8,
                  .distractor_contrast = 0.8,
                  .target_contrast = 0.8};
      distractor_strokes = 22;
      break;
    case 128:
      settings = {.margin = 2,
                  .stroke_length = 5,
                  .stroke_width = 1.5,
                  .marker_radius = 3.0,
                  .seed_distance = 20,
                  .continuity = 1.8,
                  .distractor_contrast = 0.9,
                  .target_contrast = 0.9};
      distractor_strokes = 35;
      break;
    case 256:
      settings = {.padding = 22,
                  .margin = 3,
                  .stroke_length = 5,
                  .stroke_width = 2.0,
                  .marker_radius = 5.0,
                  .seed_distance = 27,
                  .continuity = 1.8,
                  .distractor_contrast = 1.0,
                  .target_contrast = 1.0};
      distractor_strokes = 30;
      break;
    default: throw UsageError("Pathfinder has no pictures of size {}; 32, 64, 128 or 256", size);
  }
  if (settings.first_strokes.empty()) {
    // A frame of twice the seed distance, or what leaves four rows and columns.
    const int frame = std::min(2 * settings.seed_distance, size / 2 - 2);
    settings.first_strokes = {{0, 359, frame, size - 1 - frame, frame, size - 1 - frame}};
  }
  settings.size = size;
  settings.contour_length = contour;
  settings.distractor_length = distractor;
  settings.distractors = distractor_strokes / distractor;
  return settings;
}

std::string level_folder(std::string_view level) {
  contour_length_of(level);
  return level == "baseline" ? "curv_baseline" : "curv_contour_length_" + std::string(level);
}

}  // namespace lra::pathfinder
