// validate_record SCHEMA FILE…: prints what is wrong with each record or comparison; exit code 1 when anything is.
#include <iostream>

#include "lib/util/program.h"
#include "results/record.h"
#include "tests/results/schema.h"

int main(int argc, char** argv) {
  return lra::run_program("validate_record", [&] {
    if (argc < 3) {
      std::cerr << "usage: validate_record SCHEMA FILE...\n";
      return 2;
    }
    const lra::SchemaValidator validator(argv[1]);
    int exit_code = 0;
    for (int i = 2; i < argc; ++i) {
      const std::string problems = validator.problems(lra::read_file(argv[i]));
      if (problems.empty()) {
        // And our own reader takes it, where it is a record.
        if (lra::read_json(argv[i]).value("schema", "") == lra::kResultSchema) lra::read_record(argv[i]);
        continue;
      }
      std::cout << argv[i] << ": " << problems << "\n";
      exit_code = 1;
    }
    return exit_code;
  });
}
