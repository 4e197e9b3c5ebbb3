// lra-image: trains and evaluates transformers on Image. Options and run folder are common to all tasks (tasks/run/).
#include "tasks/image.h"
#include "tasks/run/program.h"

int main(int argc, char** argv) { return lra::run_task_program("lra-image", lra::ImageTask(), argc, argv); }
