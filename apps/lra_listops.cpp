// lra-listops: trains and evaluates transformers on ListOps. Options and run folder are common to all tasks
// (tasks/run/).
#include "tasks/listops.h"
#include "tasks/run/program.h"

int main(int argc, char** argv) { return lra::run_task_program("lra-listops", lra::ListopsTask(), argc, argv); }
