// Sizes and levels of Pathfinder, and the figures of each (Linsley et al. 2018, Tay et al. 2021).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lra::pathfinder {

// First strokes that a contour may begin with where it looks for a free place (the first target and distractors do): a
// range of degrees, and the places where the first target may begin with them.
struct FirstStroke {
  int least_degree = 0, most_degree = 359;
  int first_row = 0, last_row = 0, first_column = 0, last_column = 0;
};

// Lengths in pixels of the picture.
struct Settings {
  int size = 32;    // width and height
  int padding = 1;  // no stroke within this distance of the border
  int margin = 1;   // gap kept around a stroke
  int stroke_length = 2;
  double stroke_width = 0.5;
  double marker_radius = 1.5;
  int seed_distance = 7;             // between the first strokes of the two target contours
  double continuity = 1.0;           // 1 lets a contour turn by up to 90 degrees a stroke, 1.8 by 50
  double distractor_contrast = 2.0;  // of full ink; the brightest pixel of a picture becomes 255 in the end
  double target_contrast = 1.5;
  int contour_length = 14;                      // strokes in a target contour
  int distractor_length = 4;                    // and in a distractor
  int distractors = 5;                          // at most
  std::vector<FirstStroke> first_strokes = {};  // other degrees, when drawn, lead nowhere
};

// UsageError naming what is allowed.
Settings settings_of(int size, std::string_view level);

// "curv_baseline", "curv_contour_length_9", "curv_contour_length_14": the release's name of a level's folder.
std::string level_folder(std::string_view level);

}  // namespace lra::pathfinder
