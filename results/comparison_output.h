// A comparison as tables for readers, as CSV with a row a cell, and as JSON.
#pragma once

#include <string>

#include "lib/util/json.h"
#include "results/comparison.h"
#include "results/document.h"

namespace lra {

Document comparison_document(const Comparison& comparison);
std::string comparison_csv(const Comparison& comparison);
Json comparison_json(const Comparison& comparison);  // schema "lra-comparison/1"

}  // namespace lra
