// A whole task program: what apps/lra_*.cpp call with their task.
#pragma once

#include <string>

#include "tasks/task.h"

namespace lra {

// Parses, runs, prints; returns the exit code (see docs/interfaces.md). Never throws.
int run_task_program(const std::string& program, const Task& task, int argc, char** argv);

}  // namespace lra
