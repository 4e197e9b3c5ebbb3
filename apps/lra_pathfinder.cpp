// lra-pathfinder: trains and evaluates transformers on Pathfinder. Options and run folder are common to all tasks
// (tasks/run/).
#include "tasks/pathfinder.h"
#include "tasks/run/program.h"

int main(int argc, char** argv) { return lra::run_task_program("lra-pathfinder", lra::PathfinderTask(), argc, argv); }
