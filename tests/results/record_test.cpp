// The record against its schema and against an example; what is broken must be found by both schema and reader.
#include "results/record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "tests/results/schema.h"

namespace lra {
namespace {

const std::string kSource = LRA_SOURCE_DIR;

const SchemaValidator& schema() {
  static const SchemaValidator validator(kSource + "/results/schema/lra-result-1.schema.json");
  return validator;
}

Json example() { return read_json(kSource + "/tests/results/data/result-example.json"); }

TEST(Record, ExampleFitsTheSchemaAndReadsBackTheSame) {
  const Json json = example();
  EXPECT_EQ(schema().problems(json.dump()), "");
  const Record record = record_from_json(json, "example");
  // The same keys in the same order, and the same values.
  EXPECT_EQ(dump_json(record_to_json(record), 1), dump_json(json, 1));
  EXPECT_EQ(record.environment.threads, 2);
  EXPECT_EQ(record.data.train->skipped.front().first, "basic_train.tsv:17");
  EXPECT_EQ(record.history.front().examples, 2000);
}

TEST(Record, AnEmptyRecordFitsOnceItsNamesAreSet) {
  Record record;
  record.task = {"listops", 10, 32, 2000, 2048};
  record.recipe = example().at("recipe");
  record.protocol.order = "shuffled";
  record.started = utc_now();
  for (RunStatus status : {RunStatus::kRunning, RunStatus::kCompleted, RunStatus::kInterrupted, RunStatus::kDiverged,
                           RunStatus::kFailed}) {
    record.status = status;
    EXPECT_EQ(schema().problems(dump_json(record_to_json(record))), "") << status_name(status);
  }
}

TEST(Record, NumbersThatAreNotFiniteBecomeNull) {
  Record record = record_from_json(example(), "example");
  record.status = RunStatus::kDiverged;
  record.best->test_loss = std::nan("");
  record.last->validation_loss = INFINITY;
  record.history.front().loss = -INFINITY;
  record.speed.samples_per_second = std::nan("");
  const std::string text = dump_json(record_to_json(record));
  EXPECT_EQ(schema().problems(text), "");
  const Record back = record_from_json(Json::parse(text), "text");
  EXPECT_TRUE(std::isnan(back.best->test_loss));
  EXPECT_TRUE(std::isnan(back.last->validation_loss));
  EXPECT_TRUE(std::isnan(back.history.front().loss));
}

TEST(Record, BytesThatAreNotUtf8AreReplaced) {
  Record record = record_from_json(example(), "example");
  record.command = {"lra-listops", "--out", "a\xff\xfe\x80"};
  record.data.source = "\xc3";
  const auto path = std::filesystem::temp_directory_path() / ("lra-record-" + std::to_string(getpid()));
  write_record(path, record);
  EXPECT_EQ(schema().problems(read_file(path)), "");
  EXPECT_EQ(read_record(path).command.size(), 3u);
  std::filesystem::remove(path);
}

// Every key of every object, taken away or joined by a stranger.
void each_object(const Json& json, const Json::json_pointer& at, std::vector<Json::json_pointer>& found) {
  if (json.is_object()) found.push_back(at);
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    each_object(value, json.is_array() ? at / std::stoul(key) : at / key, found);
  }
}

TEST(Record, EveryMissingOrUnknownKeyIsFound) {
  const Json good = example();
  std::vector<Json::json_pointer> objects;
  each_object(good, Json::json_pointer(), objects);
  ASSERT_GT(objects.size(), 20u);
  int missing = 0;
  for (const auto& at : objects) {
    // Options of an attention and norms are open sets.
    const bool open = at.to_string() == "/attention/options" || at.to_string().starts_with("/norms/");
    for (const auto& [key, value] : good.at(at).items()) {
      if (open) break;
      Json bad = good;
      bad.at(at).erase(key);
      EXPECT_NE(schema().problems(bad.dump()), "") << at << "/" << key;
      if (at.to_string() != "/recipe") {
        EXPECT_THROW(record_from_json(bad, "bad"), InputError) << at << "/" << key;
      }
      ++missing;
    }
    if (open) continue;
    Json bad = good;
    bad.at(at)["stranger"] = 1;
    EXPECT_NE(schema().problems(bad.dump()), "") << at;
  }
  EXPECT_GT(missing, 100);
}

TEST(Record, WrongTypesAreNamed) {
  Json bad = example();
  bad["speed"]["train_seconds"] = "long";
  try {
    record_from_json(bad, "result.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "result.json: speed: train_seconds: want a number or null");
  }
  bad = example();
  bad["seed"] = uint64_t{1} << 63;
  EXPECT_THROW(record_from_json(bad, "x"), InputError);
  bad = example();
  bad["status"] = "done";
  EXPECT_THROW(record_from_json(bad, "x"), InputError);
  EXPECT_NE(schema().problems(bad.dump()), "");
  bad = example();
  bad["schema"] = "lra-result/2";
  EXPECT_THROW(record_from_json(bad, "x"), InputError);
  EXPECT_THROW(record_from_json(Json::array(), "x"), InputError);
}

}  // namespace
}  // namespace lra
