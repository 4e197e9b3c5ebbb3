// Checkpoints of the Nystroemformer paper's Long Range Arena code (Xiong et al. 2021, mlpen/Nystromformer, LRA/): its
// state dict, saved as safetensors, becomes one of ours.
#pragma once

#include <filesystem>
#include <string>

#include "tasks/recipe.h"

namespace lra {

// Our name of the tensor that is called `name` there ("model.transformer_0.mha.W_q.weight" ->
// "encoder.blocks.0.attention.query.weight"), empty where there is none.
std::string name_of_nystromformer(const std::string& name);

// Writes `out` with the tensors of `in` under our names, and the configuration that belongs to them: sizes are those of
// the tensors, the rest (heads, pooling, dropout, max_length) is the recipe's. `attention` is a canonical spec.
// InputError naming a tensor that is missing, unknown or misshapen.
void convert_nystromformer(const std::filesystem::path& in, const std::filesystem::path& out, const TaskFacts& task,
                           Recipe recipe, const std::string& attention);

}  // namespace lra
