// Norms of attention at the start values of a model, by length: how ‖P‖ and ‖dP/dS‖ grow with the number of tokens
// before anything is learnt. Of the first layer: those above see tokens that it has made alike, and what theory says is
// of independent ones.
#pragma once

#include <cstdint>
#include <string>

#include "lib/util/json.h"
#include "tasks/recipe.h"

namespace lra {

struct StartNorms {
  std::string attention;  // canonical
  int64_t length = 0;
  double frobenius = 0.0;  // means over heads and examples; NaN: not defined
  double jacobian = 0.0;
  double score_gradient = 0.0;
  double max_score = 0.0;  // largest
};

// recipe: resolved, its max_length is the length. `examples` examples of random tokens, start values of seed 0.
StartNorms measure_start_norms(const Recipe& recipe, const TaskFacts& task, const std::string& attention, int examples,
                               int threads);

Json to_json(const StartNorms& norms);

}  // namespace lra
