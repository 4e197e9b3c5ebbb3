// Start values of the parameters. Internal to this room.
#pragma once

#include <cstdint>
#include <span>

#include "lib/model/config.h"
#include "lib/model/parameters.h"
#include "lib/model/plan.h"

namespace lra {

// Every tensor has its own random stream, a function of (seed, name): nothing depends on the order of tensors or on
// which others the model has.
void initialise_parameters(const ModelConfig& config, const ModelPlan& plan, const ParameterLayout& layout,
                           uint64_t seed, std::span<float> parameters);

}  // namespace lra
