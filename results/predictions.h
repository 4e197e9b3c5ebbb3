// Classes that runs predicted on the test split, predictions-test.jsonl beside the record, and McNemar's test on the
// rows of two runs of one seed. The file of a run is optional: what is missing or damaged is named, never an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "results/comparison.h"

namespace lra {

struct Predictions {
  std::vector<bool> right;  // by row
  uint64_t rows_hash = 0;   // of indices and labels: equal where two runs tested the same rows
};

// InputError naming the file, and the line at fault.
Predictions read_predictions(const std::filesystem::path& file);

// Fills row_tests of every cell against the baseline of its setting, and row_notes of the setting.
void test_rows(std::vector<Setting>& settings, const std::string& baseline);

}  // namespace lra
