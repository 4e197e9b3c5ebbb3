#include "tasks/run/record_parts.h"

#include "datasets/statistics.h"
#include "lib/attention/registry.h"
#include "lib/util/build_info.h"
#include "lib/util/cpu.h"
#include "lib/util/files.h"

namespace lra {

TaskRecord task_record(const ModelConfig& model) {
  return {.name = model.task,
          .classes = model.classes,
          .vocabulary = model.vocabulary,
          .max_length = model.max_length,
          .padded_length = model.padded_length};
}

AttentionRecord attention_record(const ModelConfig& model, const BatchModel* device) {
  const AttentionSpec spec = parse_attention(model.attention);
  const std::unique_ptr<AttentionKernel> kernel =
      make_attention(spec, {model.heads, model.head_dim(), model.padded_length, model.dim});
  AttentionRecord record;
  record.spec = spec.canonical();
  record.name = spec.name;
  record.options = spec.options_json();
  const auto form = [&](bool training, float dropout) -> std::string {
    if (device == nullptr) return kernel->form(training, dropout);
    return device->linear() ? "linear" : "quadratic";
  };
  record.form_train = form(true, model.attention_dropout);
  record.form_evaluate = form(false, 0.0f);
  record.dropout_applies = kernel->dropout_applies();
  return record;
}

ModelRecord model_record(const Classifier& model) {
  const ParameterLayout& layout = model.layout();
  ModelRecord record{.parameters = layout.size()};
  const std::string positions = "encoder.position_embedding.weight";
  if (layout.contains(positions)) record.position_parameters = layout.at(positions).size;
  return record;
}

SplitRecord split_record(const DataSplit& split, const SplitStatistics& statistics, int64_t limit) {
  SplitRecord record;
  record.examples = split.size();
  record.hash = hex64(statistics.hash);
  record.length_min = statistics.length.min;
  record.length_median = statistics.length.median;
  record.length_p95 = statistics.length.p95;
  record.length_max = statistics.length.max;
  if (split.size() > 0) {
    record.truncated_share = static_cast<double>(split.truncated()) / static_cast<double>(split.size());
  }
  record.majority_share = statistics.majority_share;
  if (limit > 0) record.limited_to = limit;
  for (const Skipped& skipped : split.skipped()) {
    record.skipped.push_back({skipped.reason, skipped.count, skipped.first});
  }
  return record;
}

DataRecord data_record(const DataPlace& place, const TaskData& data, int64_t limit_train, int64_t limit_eval) {
  DataRecord record;
  record.source = place.source;
  if (place.generated) record.cache = place.path.string();
  std::optional<SplitStatistics> train;
  if (data.train) {
    train = split_statistics(*data.train);
    record.train = split_record(*data.train, *train, limit_train);
  }
  if (data.validation)
    record.validation = split_record(*data.validation, split_statistics(*data.validation), limit_eval);
  if (data.test) {
    const SplitStatistics test = split_statistics(*data.test);
    record.test = split_record(*data.test, test, limit_eval);
    if (train) record.test->also_in_train = also_in_train(*train, test);
  }
  return record;
}

EnvironmentRecord environment_record(int threads, const std::string& backend, const std::string& precision,
                                     const BatchModel* device) {
  const BuildInfo& build = build_info();
  EnvironmentRecord record;
  record.version = build.version;
  record.commit = build.commit;
  record.dirty = build.dirty;
  record.compiler = build.compiler;
  record.build = build.build;
  record.onednn = build.onednn;
  record.tbb = build.tbb;
  record.cpu = cpu_name();
  record.instruction_set = instruction_set();
  record.threads = threads;
  record.backend = backend;
  if (device != nullptr) record.gpu = device->device_name();
  record.precision = precision;
  return record;
}

std::vector<std::string> data_lines(const DataRecord& data) {
  std::vector<std::string> lines;
  std::string rows;
  const auto add = [&](const char* name, const std::optional<SplitRecord>& split) {
    if (!split) return;
    rows += fmt::format("{}{} {}", rows.empty() ? "" : ", ", split->examples, name);
    if (split->truncated_share > 0) {
      lines.push_back(fmt::format("data: {}: {:.1f} % of the rows are cut at the length limit", name,
                                  100 * split->truncated_share));
    }
    for (const SkippedRecord& skipped : split->skipped) {
      lines.push_back(fmt::format("data: {}: {} bad rows skipped: {}, first {}", name, skipped.count, skipped.reason,
                                  skipped.first));
    }
  };
  add("training", data.train);
  add("validation", data.validation);
  add("test", data.test);
  lines.insert(lines.begin(), fmt::format("data: {} ({} rows)", data.cache.value_or(data.source), rows));
  return lines;
}

}  // namespace lra
