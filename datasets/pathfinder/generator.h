// Generated Pathfinder pictures (Linsley et al. 2018, with the settings of the Long Range Arena): two dashed contours
// among shorter ones, a disc on an end of one and another disc on the far end of the same (label 1) or the other (label
// 0) contour. The pictures agree with the original's in distribution, not pixel by pixel.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "datasets/pathfinder/settings.h"

namespace lra::pathfinder {

struct GeneratorOptions {
  int64_t count = 200000;
  int size = 32;             // 32, 64, 128 or 256: width and height
  std::string level = "14";  // strokes in a target contour: "baseline" (6), "9" or "14"
  uint64_t seed = 0;
  int threads = 0;     // 0: all that this process may use. No effect on what is generated
  bool truth = false;  // draw GeneratedPicture::truth
};

// What a pixel of the truth belongs to; where things overlap, the larger number is kept.
enum Truth : uint8_t { kGround = 0, kDistractor = 1, kFirstTarget = 2, kSecondTarget = 3, kMarker = 4 };

struct GeneratedPicture {
  int64_t index = 0;
  int32_t label = 0;            // 1: both markers lie on one contour
  std::vector<uint8_t> pixels;  // [size * size], row by row, ground 0
  std::vector<uint8_t> truth;   // [size * size] of Truth, or empty
};

// Called on the calling thread, in the order of index.
using PictureSink = std::function<void(const GeneratedPicture&)>;
// Pictures given to the sink so far, of all that will be.
using GeneratorProgress = std::function<void(int64_t done, int64_t total)>;

// Picture i is a function of (seed, i, size, level) alone; `truth` does not change the pixels. What sink or progress
// throw ends the work.
void generate(const GeneratorOptions& options, const PictureSink& sink, const GeneratorProgress& progress = {});

}  // namespace lra::pathfinder
