#include "results/record.h"

#include <chrono>
#include <cmath>
#include <ctime>

#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra {

namespace {

constexpr const char* kStatusNames[] = {"running", "completed", "interrupted", "diverged", "failed"};

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <class T>
Json nullable(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json split_to_json(const std::optional<SplitRecord>& split, bool test) {
  if (!split) return nullptr;
  Json skipped = Json::array();
  for (const SkippedRecord& s : split->skipped) {
    skipped.push_back({{"reason", s.reason}, {"count", s.count}, {"first", s.first}});
  }
  Json json = {{"examples", split->examples},
               {"hash", split->hash},
               {"length",
                {{"min", split->length_min},
                 {"median", split->length_median},
                 {"p95", split->length_p95},
                 {"max", split->length_max}}},
               {"truncated_share", number(split->truncated_share)},
               {"majority_share", number(split->majority_share)},
               {"limited_to", nullable(split->limited_to)},
               {"skipped", skipped}};
  if (test) json["also_in_train"] = nullable(split->also_in_train);
  return json;
}

Json metrics_to_json(const std::optional<CheckpointMetrics>& m) {
  if (!m) return nullptr;
  Json confusion = m->test_confusion.empty() ? Json(nullptr) : Json(m->test_confusion);
  return {{"step", nullable(m->step)},
          {"validation_accuracy", number(m->validation_accuracy)},
          {"validation_loss", number(m->validation_loss)},
          {"test_accuracy", number(m->test_accuracy)},
          {"test_loss", number(m->test_loss)},
          {"test_examples", nullable(m->test_examples)},
          {"test_confusion", confusion}};
}

// A JSON object with the way to it, for messages that name the key at fault.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) throw InputError("{}: want a JSON object", where_);
  }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) throw InputError("{}: key '{}' is missing", where_, key);
    return *found;
  }

  std::string name(const char* key) const { return where_ + ": " + key; }
  Reader object(const char* key) const { return {at(key), name(key)}; }
  bool is_null(const char* key) const { return at(key).is_null(); }

  void read(const char* key, std::string& value) const {
    if (!at(key).is_string()) throw InputError("{}: want a text", name(key));
    value = at(key).get<std::string>();
  }
  void read(const char* key, bool& value) const {
    if (!at(key).is_boolean()) throw InputError("{}: want true or false", name(key));
    value = at(key).get<bool>();
  }
  void read(const char* key, int64_t& value) const {
    if (!at(key).is_number_integer()) throw InputError("{}: want a whole number", name(key));
    if (at(key).is_number_unsigned() && at(key).get<uint64_t>() > INT64_MAX)
      throw InputError("{}: {} is too large", name(key), dump_json(at(key)));
    value = at(key).get<int64_t>();
  }
  void read(const char* key, double& value) const {
    if (!at(key).is_number() && !is_null(key)) throw InputError("{}: want a number or null", name(key));
    value = is_null(key) ? kUnknown : at(key).get<double>();
  }
  template <class T>
  void read(const char* key, std::optional<T>& value) const {
    value.reset();
    if (is_null(key)) return;
    T found{};
    read(key, found);
    value = found;
  }
  // Calls each(element, its name) for the elements of an array.
  template <class Each>
  void each(const char* key, Each&& each) const {
    if (!at(key).is_array()) throw InputError("{}: want an array", name(key));
    size_t i = 0;
    for (const Json& element : at(key)) each(element, fmt::format("{}[{}]", name(key), i++));
  }

 private:
  const Json& json_;
  std::string where_;
};

std::optional<SplitRecord> split_from_json(const Reader& splits, const char* key) {
  if (splits.is_null(key)) return std::nullopt;
  const Reader in = splits.object(key);
  SplitRecord split;
  in.read("examples", split.examples);
  in.read("hash", split.hash);
  const Reader length = in.object("length");
  length.read("min", split.length_min);
  length.read("median", split.length_median);
  length.read("p95", split.length_p95);
  length.read("max", split.length_max);
  in.read("truncated_share", split.truncated_share);
  in.read("majority_share", split.majority_share);
  in.read("limited_to", split.limited_to);
  in.each("skipped", [&](const Json& element, const std::string& where) {
    const Reader reader(element, where);
    SkippedRecord& skipped = split.skipped.emplace_back();
    reader.read("reason", skipped.reason);
    reader.read("count", skipped.count);
    reader.read("first", skipped.first);
  });
  if (std::string(key) == "test") in.read("also_in_train", split.also_in_train);
  return split;
}

std::optional<CheckpointMetrics> metrics_from_json(const Reader& metrics, const char* key) {
  if (metrics.is_null(key)) return std::nullopt;
  const Reader in = metrics.object(key);
  CheckpointMetrics m;
  in.read("step", m.step);
  in.read("validation_accuracy", m.validation_accuracy);
  in.read("validation_loss", m.validation_loss);
  in.read("test_accuracy", m.test_accuracy);
  in.read("test_loss", m.test_loss);
  in.read("test_examples", m.test_examples);
  if (!in.is_null("test_confusion")) {
    in.each("test_confusion", [&](const Json& row, const std::string& where) {
      if (!row.is_array()) throw InputError("{}: want an array of counts", where);
      std::vector<int64_t>& counts = m.test_confusion.emplace_back();
      for (const Json& count : row) {
        if (!count.is_number_integer()) throw InputError("{}: want whole numbers", where);
        counts.push_back(count.get<int64_t>());
      }
    });
  }
  return m;
}

void read_parts(const Reader& in, Record& r) {
  const Reader task = in.object("task");
  task.read("name", r.task.name);
  task.read("classes", r.task.classes);
  task.read("vocabulary", r.task.vocabulary);
  task.read("max_length", r.task.max_length);
  task.read("padded_length", r.task.padded_length);

  const Reader attention = in.object("attention");
  attention.read("spec", r.attention.spec);
  attention.read("name", r.attention.name);
  attention.object("options");
  r.attention.options = attention.at("options");
  const Reader form = attention.object("form");
  form.read("train", r.attention.form_train);
  form.read("evaluate", r.attention.form_evaluate);
  attention.read("attention_dropout_applies", r.attention.dropout_applies);

  in.object("recipe");
  r.recipe = in.at("recipe");
  in.read("seed", r.seed);
  const Reader model = in.object("model");
  model.read("parameters", r.model.parameters);
  model.read("position_parameters", r.model.position_parameters);

  const Reader data = in.object("data");
  data.read("source", r.data.source);
  data.read("cache", r.data.cache);
  const Reader splits = data.object("splits");
  r.data.train = split_from_json(splits, "train");
  r.data.validation = split_from_json(splits, "validation");
  r.data.test = split_from_json(splits, "test");

  const Reader protocol = in.object("protocol");
  protocol.read("validation", r.protocol.validation);
  protocol.read("selection", r.protocol.selection);
  protocol.read("order", r.protocol.order);

  const Reader metrics = in.object("metrics");
  r.best = metrics_from_json(metrics, "best");
  r.last = metrics_from_json(metrics, "last");
  in.each("history", [&](const Json& element, const std::string& where) {
    r.history.push_back(evaluation_from_json(element, where));
  });
  in.each("norms", [](const Json&, const std::string&) {});
  r.norms = in.at("norms");
}

void read_circumstances(const Reader& in, Record& r) {
  const Reader speed = in.object("speed");
  speed.read("train_seconds", r.speed.train_seconds);
  speed.read("evaluation_seconds", r.speed.evaluation_seconds);
  speed.read("samples_per_second", r.speed.samples_per_second);
  speed.read("tokens_per_second", r.speed.tokens_per_second);
  speed.read("eval_samples_per_second", r.speed.eval_samples_per_second);
  speed.read("flops_per_sample", r.speed.flops_per_sample);
  speed.read("achieved_gflops", r.speed.achieved_gflops);
  speed.read("peak_rss_bytes", r.speed.peak_rss_bytes);

  EnvironmentRecord& e = r.environment;
  const Reader environment = in.object("environment");
  environment.read("version", e.version);
  environment.read("commit", e.commit);
  environment.read("dirty", e.dirty);
  environment.read("compiler", e.compiler);
  environment.read("build", e.build);
  environment.read("onednn", e.onednn);
  environment.read("tbb", e.tbb);
  environment.read("cpu", e.cpu);
  environment.read("instruction_set", e.instruction_set);
  environment.read("threads", e.threads);
  environment.read("ranks", e.ranks);
  environment.read("backend", e.backend);
  environment.read("gpu", e.gpu);
  environment.read("precision", e.precision);

  in.each("command", [&](const Json& element, const std::string& where) {
    if (!element.is_string()) throw InputError("{}: want a text", where);
    r.command.push_back(element.get<std::string>());
  });
  in.read("started", r.started);
  in.read("finished", r.finished);
  in.read("resumed", r.resumed);
}

}  // namespace

const char* status_name(RunStatus status) { return kStatusNames[static_cast<int>(status)]; }

bool selected_on_test(const Json& recipe) {
  const auto validation = recipe.find("validation");
  return validation != recipe.end() && *validation == "test";
}

bool is_evaluation(const Record& r) {
  const auto steps = r.recipe.find("steps");
  return steps != r.recipe.end() && steps->is_null();
}

Json evaluation_to_json(const EvaluationRecord& e) {
  return {{"split", e.split},
          {"step", nullable(e.step)},
          {"loss", number(e.loss)},
          {"accuracy", number(e.accuracy)},
          {"examples", e.examples}};
}

EvaluationRecord evaluation_from_json(const Json& json, const std::string& where) {
  const Reader in(json, where);
  EvaluationRecord e;
  in.read("split", e.split);
  in.read("step", e.step);
  in.read("loss", e.loss);
  in.read("accuracy", e.accuracy);
  in.read("examples", e.examples);
  return e;
}

Json record_to_json(const Record& r) {
  Json history = Json::array();
  for (const EvaluationRecord& evaluation : r.history) history.push_back(evaluation_to_json(evaluation));
  const EnvironmentRecord& e = r.environment;
  Json json;
  json["schema"] = kResultSchema;
  json["status"] = status_name(r.status);
  json["error"] = nullable(r.error);
  json["task"] = {{"name", r.task.name},
                  {"classes", r.task.classes},
                  {"vocabulary", r.task.vocabulary},
                  {"max_length", r.task.max_length},
                  {"padded_length", r.task.padded_length}};
  json["attention"] = {{"spec", r.attention.spec},
                       {"name", r.attention.name},
                       {"options", r.attention.options},
                       {"form", {{"train", r.attention.form_train}, {"evaluate", r.attention.form_evaluate}}},
                       {"attention_dropout_applies", r.attention.dropout_applies}};
  json["recipe"] = r.recipe;
  json["seed"] = nullable(r.seed);
  json["model"] = {{"parameters", r.model.parameters}, {"position_parameters", r.model.position_parameters}};
  json["data"] = {{"source", r.data.source},
                  {"cache", nullable(r.data.cache)},
                  {"splits",
                   {{"train", split_to_json(r.data.train, false)},
                    {"validation", split_to_json(r.data.validation, false)},
                    {"test", split_to_json(r.data.test, true)}}}};
  json["protocol"] = {
      {"validation", r.protocol.validation}, {"selection", r.protocol.selection}, {"order", r.protocol.order}};
  json["metrics"] = {{"best", metrics_to_json(r.best)}, {"last", metrics_to_json(r.last)}};
  json["history"] = history;
  json["norms"] = r.norms;
  json["speed"] = {{"train_seconds", number(r.speed.train_seconds)},
                   {"evaluation_seconds", number(r.speed.evaluation_seconds)},
                   {"samples_per_second", number(r.speed.samples_per_second)},
                   {"tokens_per_second", number(r.speed.tokens_per_second)},
                   {"eval_samples_per_second", number(r.speed.eval_samples_per_second)},
                   {"flops_per_sample", number(r.speed.flops_per_sample)},
                   {"achieved_gflops", number(r.speed.achieved_gflops)},
                   {"peak_rss_bytes", r.speed.peak_rss_bytes}};
  json["environment"] = {{"version", e.version},
                         {"commit", e.commit},
                         {"dirty", e.dirty},
                         {"compiler", e.compiler},
                         {"build", e.build},
                         {"onednn", e.onednn},
                         {"tbb", e.tbb},
                         {"cpu", e.cpu},
                         {"instruction_set", e.instruction_set},
                         {"threads", e.threads},
                         {"ranks", e.ranks},
                         {"backend", e.backend},
                         {"gpu", nullable(e.gpu)},
                         {"precision", e.precision}};
  json["command"] = r.command;
  json["started"] = r.started;
  json["finished"] = nullable(r.finished);
  json["resumed"] = r.resumed;
  return json;
}

Record record_from_json(const Json& json, const std::string& where) {
  const Reader in(json, where);
  Record r;
  std::string schema, status;
  in.read("schema", schema);
  if (schema != kResultSchema) throw InputError("{}: schema is '{}'; want '{}'", where, schema, kResultSchema);
  in.read("status", status);
  int found = -1;
  for (int i = 0; i < 5; ++i) {
    if (status == kStatusNames[i]) found = i;
  }
  if (found < 0) throw InputError("{}: unknown status '{}'", where, status);
  r.status = static_cast<RunStatus>(found);
  in.read("error", r.error);
  read_parts(in, r);
  read_circumstances(in, r);
  return r;
}

void write_record(const std::filesystem::path& path, const Record& record) {
  write_file_atomic(path, dump_json(record_to_json(record), 2) + "\n");
}

Record read_record(const std::filesystem::path& path) { return record_from_json(read_json(path), path.string()); }

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace lra
