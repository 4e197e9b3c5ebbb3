#include "datasets/pathfinder/generator.h"

#include <algorithm>
#include <array>
#include <deque>
#include <future>
#include <utility>

#include "datasets/pathfinder/contours.h"
#include "datasets/pathfinder/strokes.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "lib/util/rng.h"

namespace lra::pathfinder {
namespace {

constexpr double kMarkerContrast = 1.0;
constexpr uint8_t kVisible = 32;  // level of a stroke or marker from which a pixel is its own in the truth

// A picture being put together: the brightest of what is stamped on a pixel stays.
class Picture {
 public:
  Picture(int size, bool want_truth) : size_(size), light_(static_cast<size_t>(size) * static_cast<size_t>(size)) {
    if (want_truth) truth_.resize(light_.size());
  }

  void stamp(const Stamp& ink, Point at, double contrast, Truth what) {
    size_t i = 0;
    for (int row = at.row - ink.radius; row <= at.row + ink.radius; ++row) {
      for (int column = at.column - ink.radius; column <= at.column + ink.radius; ++column, ++i) {
        if (row < 0 || column < 0 || row >= size_ || column >= size_) continue;
        put(static_cast<size_t>(row) * static_cast<size_t>(size_) + static_cast<size_t>(column), ink.levels[i],
            contrast, what);
      }
    }
  }

  void stamp_all(const std::vector<uint8_t>& levels, double contrast, Truth what) {
    for (size_t i = 0; i < levels.size(); ++i) put(i, levels[i], contrast, what);
  }

  // Scaled so that the brightest pixel is 255. The order of operations decides how the many exact halves are rounded;
  // it is the original's.
  std::vector<uint8_t> pixels() const {
    const double scale = 255.0 / *std::max_element(light_.begin(), light_.end());
    std::vector<uint8_t> pixels(light_.size());
    for (size_t i = 0; i < light_.size(); ++i) pixels[i] = static_cast<uint8_t>(light_[i] * scale + 0.5);
    return pixels;
  }

  std::vector<uint8_t> take_truth() { return std::move(truth_); }

 private:
  void put(size_t pixel, uint8_t level, double contrast, Truth what) {
    light_[pixel] = std::max(light_[pixel], level / 255.0 * contrast);
    if (!truth_.empty() && level >= kVisible) truth_[pixel] = std::max<uint8_t>(truth_[pixel], what);
  }

  int size_;
  std::vector<double> light_;  // full ink at contrast 1 = 1
  std::vector<uint8_t> truth_;
};

GeneratedPicture make_picture(const GeneratorOptions& options, const Settings& settings, const Brushes& brushes,
                              int64_t index) {
  Random random(options.seed, RandomStream::kData, static_cast<uint64_t>(index));
  GeneratedPicture result;
  result.index = index;
  result.label = static_cast<int32_t>(random.below(2));
  const uint32_t marked = random.below(2);

  const Contours contours = ContourGrower(settings, brushes, random).grow();
  Picture picture(settings.size, options.truth);
  const auto draw = [&](const Contour& contour, double contrast, Truth what) {
    for (const PlacedStroke& stroke : contour.strokes) {
      picture.stamp(brushes.along(stroke.direction).ink, stroke.at, contrast, what);
    }
  };
  draw(contours.targets[0], settings.target_contrast, kFirstTarget);
  draw(contours.targets[1], settings.target_contrast, kSecondTarget);
  for (const Contour& contour : contours.distractors) draw(contour, settings.distractor_contrast, kDistractor);
  const Contour& one = contours.targets[marked];
  const Contour& other = result.label == 1 ? one : contours.targets[1 - marked];
  picture.stamp_all(brushes.markers(std::array{one.origin, other.end}), kMarkerContrast, kMarker);
  result.pixels = picture.pixels();
  result.truth = picture.take_truth();
  return result;
}

}  // namespace

void generate(const GeneratorOptions& options, const PictureSink& sink, const GeneratorProgress& progress) {
  check(options.count >= 0, "a negative number of pictures");
  const Settings settings = settings_of(options.size, options.level);
  const Brushes brushes(settings);
  const int threads = options.threads > 0 ? options.threads : default_threads();
  // Pictures a thread takes at a time: a fraction of a second's work.
  const int64_t range = std::max<int64_t>(1, 65536 / (settings.size * settings.size));
  const auto make_range = [&](int64_t begin) {
    std::vector<GeneratedPicture> pictures;
    for (int64_t i = begin; i < std::min(begin + range, options.count); ++i) {
      pictures.push_back(make_picture(options, settings, brushes, i));
    }
    return pictures;
  };

  // A future of std::async waits for its thread when it goes, so that an exception of sink or progress leaves none
  // behind that still uses what stands above.
  std::deque<std::future<std::vector<GeneratedPicture>>> ahead;
  int64_t next = 0;
  for (int64_t done = 0; done < options.count;) {
    for (; next < options.count && std::ssize(ahead) < threads + 1; next += range) {
      ahead.push_back(std::async(std::launch::async, make_range, next));
    }
    const std::vector<GeneratedPicture> pictures = ahead.front().get();
    ahead.pop_front();
    for (const GeneratedPicture& picture : pictures) sink(picture);
    done += std::ssize(pictures);
    if (progress) progress(done, options.count);
  }
}

}  // namespace lra::pathfinder
