// What a run folder holds beside its record: the course of training and of the norms. Both files are optional; what is
// missing or damaged is named, and the record stands in where it holds the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "results/record_files.h"

namespace lra {

// The norms that are followed over training, and what they are in words.
struct NormKind {
  const char* key;
  const char* title;
};
inline constexpr NormKind kNormKinds[] = {{"frobenius_mean", "Frobenius norm of P"},
                                          {"jacobian", "Frobenius norm of dP/dS"},
                                          {"score_gradient", "Frobenius norm of dL/dS"}};

using Course = std::map<int64_t, double>;  // by step

struct RunLog {
  bool has_metrics = true;
  Course loss;                                              // of training batches, as logged
  Course validation;                                        // accuracy
  std::map<std::pair<std::string, int64_t>, Course> norms;  // by key and layer, mean over heads
  std::vector<std::string> problems;                        // one line each
};

RunLog read_run_log(const RecordFile& run);

}  // namespace lra
