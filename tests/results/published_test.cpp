// The published figures: each file fits its schema, and what nobody has looked up says so.
#include "results/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "lib/util/files.h"
#include "tests/results/schema.h"

namespace lra {
namespace {

TEST(Published, EveryFileFitsTheSchema) {
  const std::string source = LRA_SOURCE_DIR;
  const SchemaValidator schema(source + "/results/schema/lra-published-1.schema.json");
  ASSERT_GE(published_files().size(), 20u);
  for (const auto& [name, text] : published_files()) {
    EXPECT_EQ(schema.problems(text), "") << name;
    EXPECT_EQ(text, read_file(std::filesystem::path(source) / "results/published" / (name + ".json")));
    Json bad = parse_json(text, name);
    bad["rows"][0].erase("verified");
    EXPECT_NE(schema.problems(bad.dump()), "") << name;
  }
}

TEST(Published, OnlyRowsWithAFigureOfTheTasks) {
  const Json all = published_rows({"listops", "text", "retrieval", "image", "pathfinder"});
  const Json listops = published_rows({"listops"});
  EXPECT_GT(all.size(), listops.size());
  EXPECT_TRUE(std::none_of(listops.begin(), listops.end(), [](const Json& row) { return row["listops"].is_null(); }));
  EXPECT_TRUE(published_document({"chess"}).empty());
}

TEST(Published, AveragesAreOurOwnAndFromMemoryStaysVisible) {
  const std::string text = as_text(published_document({"listops", "text", "retrieval", "image", "pathfinder"}));
  EXPECT_NE(text.find("from memory"), std::string::npos);
  // (33.67 + 61.20 + 53.83 + 41.23 + 67.45) / 5; the source prints 51.29.
  EXPECT_NE(text.find("67.45    51.48"), std::string::npos) << text.substr(0, 3000);
}

}  // namespace
}  // namespace lra
