// The tasks of the Long Range Arena by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra {

// "listops", "text", "retrieval", "image", "pathfinder".
const std::vector<std::string>& task_names();

// UsageError with `where` ("--task") on an unknown name.
std::unique_ptr<Task> make_task(const std::string& where, const std::string& name);

}  // namespace lra
