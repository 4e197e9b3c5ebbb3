#include "tasks/run/run_counters.h"

#include <cmath>

#include "lib/util/check.h"

namespace lra {

namespace {

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Json counters_to_json(const RunCounters& c) {
  Json history = Json::array();
  for (const EvaluationRecord& evaluation : c.history) history.push_back(evaluation_to_json(evaluation));
  const auto metrics = [](const std::optional<CheckpointMetrics>& m) -> Json {
    if (!m) return nullptr;
    return {{"step", *m->step},
            {"validation_accuracy", m->validation_accuracy},
            {"validation_loss", finite(m->validation_loss)}};
  };
  return {{"step", c.step},
          {"evaluated", c.evaluated},
          {"train_seconds", c.train_seconds},
          {"evaluation_seconds", c.evaluation_seconds},
          {"evaluated_examples", c.evaluated_examples},
          {"tokens", c.tokens},
          {"flops", c.flops},
          {"started", c.started},
          {"resumed", c.resumed},
          {"best", metrics(c.best)},
          {"last", metrics(c.last)},
          {"history", history}};
}

RunCounters counters_from_json(const Json& json, const std::string& where) {
  try {
    RunCounters c;
    const auto whole = [&](const Json& in, const char* key) {
      const Json& value = in.at(key);
      if (!value.is_number_integer()) throw InputError("{}: {}: want a whole number", where, key);
      return value.get<int64_t>();
    };
    const auto metrics = [&](const Json& m) -> std::optional<CheckpointMetrics> {
      if (m.is_null()) return std::nullopt;
      CheckpointMetrics found;
      found.step = whole(m, "step");
      found.validation_accuracy = m.at("validation_accuracy").get<double>();
      if (!m.at("validation_loss").is_null()) found.validation_loss = m.at("validation_loss").get<double>();
      return found;
    };
    c.step = whole(json, "step");
    json.at("evaluated").get_to(c.evaluated);
    json.at("train_seconds").get_to(c.train_seconds);
    json.at("evaluation_seconds").get_to(c.evaluation_seconds);
    c.evaluated_examples = whole(json, "evaluated_examples");
    c.tokens = whole(json, "tokens");
    json.at("flops").get_to(c.flops);
    json.at("started").get_to(c.started);
    c.resumed = whole(json, "resumed");
    c.best = metrics(json.at("best"));
    c.last = metrics(json.at("last"));
    for (const Json& evaluation : json.at("history")) c.history.push_back(evaluation_from_json(evaluation, where));
    return c;
  } catch (const Json::exception& error) {
    throw InputError("{}: {}", where, error.what());
  }
}

}  // namespace lra
