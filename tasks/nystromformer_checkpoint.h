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

// UsageError on an attention whose own tensors there have no known place in our model.
void require_convertible(const std::string& attention);

// Name of the only task that has the vocabulary, classes and documents an example of the tensors in `in`. UsageError
// naming those that would do where there are several, InputError where there is none.
std::string task_of_nystromformer(const std::filesystem::path& in);

// Writes `out` with the tensors of `in` under our names, and the configuration that belongs to them: sizes are those of
// the tensors, the rest (heads, pooling, dropout, max_length) is the recipe's. `attention` is a canonical spec.
// InputError naming a tensor that is missing, unknown or misshapen.
void convert_nystromformer(const std::filesystem::path& in, const std::filesystem::path& out, const TaskFacts& task,
                           Recipe recipe, const std::string& attention);

}  // namespace lra
