// Records of runs (result.json), which come from other machines and other versions.
#include "results/record.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

void record_file(Bytes bytes) {
  const std::filesystem::path path = scratch_file("result.json", text_of(bytes));
  accepts([&] {
    const Json json = record_to_json(read_record(path));
    Record again;
    require(accepts([&] { again = record_from_json(parse_json(dump_json(json), "again"), "again"); }),
            "a record that was accepted is refused once written");
    require(dump_json(record_to_json(again)) == dump_json(json), "a record changes when it is written and read");
  });
}

}  // namespace lra::fuzz
