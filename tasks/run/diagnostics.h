// What --norms and --maps write into a run folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/model/classifier.h"
#include "lib/util/json.h"
#include "lib/util/log.h"

namespace lra {

inline constexpr const char* kNormsFile = "norms.jsonl";
inline constexpr const char* kMapsFolder = "maps";

// Norms of the model's attention over the first 32 rows, a line a layer and head. Call from inside Threads::run.
std::vector<Json> norm_lines(const Classifier& model, const ExampleSource& data, int64_t step);

struct MapRequest {
  const Classifier& model;
  const ExampleSource& data;
  std::string split;  // "test": part of the names
  int64_t limit = 0;  // first rows only; 0 = all
  int64_t count = 0;  // rows, evenly spread
  std::filesystem::path folder;
  std::function<bool()> stop;  // polled between rows; true throws Interrupted
};

// A picture a row, layer and head (and document of a pair), and a sheet of all, or of 40 rows where there are more.
// Says where, or that the model's attention has no matrix.
void write_maps(const MapRequest& request, Log& log);

// Removes the pictures of an earlier run.
void clear_maps(const std::filesystem::path& folder);

}  // namespace lra
