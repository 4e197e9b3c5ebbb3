// The pictures of a Pathfinder set as examples: put in order by the hash of their names and cut in three, the same on
// every machine whatever its folders' order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datasets/byte_rows.h"
#include "datasets/example.h"

namespace lra::pathfinder {

struct ReadOptions {
  int size = 32;                    // pictures are size x size
  bool shifted = false;             // id = grey level + 1; otherwise the level, black pixels being padding
  int64_t max_length = 0;           // pixels a picture is cut at; 0 = never
  int64_t limit_train = 0;          // first pictures of the split; 0 = all
  int64_t limit_eval = 0;           // of validation and of test
  bool strict = false;              // a bad row or picture is an error
  Split told_with = Split::kTrain;  // the split whose skipped() tells what was left out of the set
  int threads = 0;                  // 0: all that this process may use. No effect on what is read
  int64_t held = int64_t{1} << 30;  // bytes: larger sets are read from disk again whenever asked for
  std::function<void(int64_t done, int64_t total)> progress = {};  // called by one thread at a time
};

struct Splits {
  std::unique_ptr<DataSplit> train, validation, test;
};

// The pictures that can be used, in the order of the splits.
struct Pictures {
  int size = 0;
  std::vector<int32_t> labels = {};
  std::vector<uint8_t> held = {};                                           // one after another, or empty: then
  std::function<void(int64_t index, std::span<uint8_t> pixels)> load = {};  // thread-safe
  SkippedRows skipped = {};
};

// The order of names: by their XXH64 (seed 0), at equal hash by bytes. Returns the positions in `paths`.
std::vector<int64_t> split_order(const std::vector<std::string>& paths);

// Training, validation and test: cut at floor(0.8 n) and floor(0.9 n). What was skipped is in none of them: the good
// pictures are cut. InputError naming `place` when there is no training picture.
Splits cut_splits(Pictures pictures, const ReadOptions& options, const std::string& place);

// Calls work(i) for 0 <= i < count on `threads` threads; the first exception ends all and is thrown here.
void for_each(int64_t count, int threads, const std::function<void(int64_t)>& work,
              const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace lra::pathfinder
