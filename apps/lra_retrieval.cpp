// lra-retrieval: trains and evaluates transformers on Retrieval. Options and run folder are common to all tasks
// (tasks/run/).
#include "tasks/retrieval.h"
#include "tasks/run/program.h"

int main(int argc, char** argv) { return lra::run_task_program("lra-retrieval", lra::RetrievalTask(), argc, argv); }
