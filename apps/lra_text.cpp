// lra-text: trains and evaluates transformers on Text. Options and run folder are common to all tasks (tasks/run/).
#include "tasks/run/program.h"
#include "tasks/text.h"

int main(int argc, char** argv) { return lra::run_task_program("lra-text", lra::TextTask(), argc, argv); }
