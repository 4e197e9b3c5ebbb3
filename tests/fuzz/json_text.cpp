// Any JSON file: recipes, records, states and grids all pass through lib/util/json.h.
#include "lib/util/json.h"
#include "tests/fuzz/target.h"

namespace lra::fuzz {

void json_text(Bytes bytes) {
  accepts([&] {
    const Json json = parse_json(text_of(bytes), "input");
    const std::string text = dump_json(json);
    Json again;
    require(accepts([&] { again = parse_json(text, "dump"); }), "what is written cannot be read");
    require(dump_json(again) == text, "what is read back is not what was written");
    require(accepts([&] { again = parse_json(dump_json(json, 2), "dump"); }), "indented, it cannot be read");
  });
}

}  // namespace lra::fuzz
