#include "tasks/run/evaluation_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "lib/attention/registry.h"
#include "lib/training/checkpoint.h"
#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "lib/util/program.h"
#include "tasks/run/backend.h"
#include "tasks/run/diagnostics.h"
#include "tasks/run/record_parts.h"
#include "tasks/run/run_folder.h"
#include "tasks/run/settings.h"

namespace lra {

namespace {

const std::set<std::string> kAllowed = {"data",     "attention",  "out",         "force",           "strict",
                                        "split",    "evaluate",   "backend",     "threads",         "precision",
                                        "progress", "limit_eval", "limit_train", "eval_batch_size", "max_time",
                                        "size",     "level",      "maps"};

void refuse_training_options(const CommandLine& line) {
  for (const std::string& name : line.given) {
    if (!kAllowed.contains(name)) {
      throw UsageError("--{}: has no part in --evaluate, which only reads the checkpoint's model", option_name(name));
    }
  }
  if (line.has("limit_train") && line.options.split != "train") {
    throw UsageError("--limit-train: has no part in --evaluate --split {}", line.options.split);
  }
  if (line.has("limit_eval") && line.options.split == "train") {
    throw UsageError("--limit-eval: has no part in --evaluate --split train; want --limit-train");
  }
}

// What the run that wrote `file` was started with, where its folder says so: which data it had is no part of the model.
std::optional<RunSettings> settings_of_run(const std::filesystem::path& file, const ModelConfig& config,
                                           const TaskFacts& task, Log& log) {
  const std::filesystem::path path = file.parent_path() / kStateFile;
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return std::nullopt;
  try {
    const Json json = read_json(path);
    if (!json.at("files").contains(file.filename().string())) return std::nullopt;
    RunSettings settings = settings_from_json(task, json.at("state").at("settings"), path.string());
    if (settings.model(task) == config) return settings;
  } catch (const std::exception& error) {
    log.line(one_line(fmt::format("{}: of no use here: {}", path.string(), error.what())));
  }
  return std::nullopt;
}

// Side of the pictures that fill the model's length; 0: none do.
int64_t side_of(const ModelConfig& config) {
  for (const int64_t side : kPictureSizes) {
    if (side * side == config.max_length) return side;
  }
  return 0;
}

// The data of the run where the command line does not say another.
DataChoice data_choice(const CommandLine& line, const TaskFacts& task, const ModelConfig& config,
                       const std::optional<RunSettings>& run) {
  const RunOptions& o = line.options;
  DataChoice choice{.size = static_cast<int>(o.size), .level = o.level};
  if (!o.data.empty()) {
    choice.path = o.data;
  } else if (run && run->data) {
    choice.path = *run->data;
  }
  if (run) choice.generated_count = run->generated;
  if (!task.sized) return choice;
  if (run && !line.has("level")) choice.level = run->level;
  const int64_t side = run ? run->size : side_of(config);
  if (side == 0) return choice;
  if (line.has("size") && o.size != side) {
    throw UsageError("--size: {} contradicts {}, whose model has pictures of {} x {}", o.size, o.evaluate, side, side);
  }
  choice.size = static_cast<int>(side);
  return choice;
}

// The recipe as far as the checkpoint and its run know it; the command line may repeat but not change the model's part.
Recipe recipe_of(const ModelConfig& config, const TaskFacts& task, const CommandLine& line,
                 const std::optional<RunSettings>& run) {
  const std::string& file = line.options.evaluate;
  if (line.has("attention")) {
    const std::string given = parse_attention(line.options.attention).canonical();
    if (given != config.attention) {
      throw UsageError("--attention: {} contradicts {}, whose model has {}", given, file, config.attention);
    }
  }
  Recipe recipe;
  recipe.name = "checkpoint";
  recipe.validation = run ? run->recipe.validation : task.validations.front();
  set_model_fields(recipe, config);
  for (const RecipeChange& change : line.changes) {
    const std::string had = get_field(recipe, change.key);
    set_field(recipe, change.key, change.where, change.text);
    if (change.key == "validation" || change.key == "test_examples") continue;
    if (!is_model_field(change.key)) throw UsageError("{}: has no part in --evaluate", change.where);
    const std::string given = get_field(recipe, change.key);
    if (given != had) throw UsageError("{}: {} contradicts {}, whose model has {}", change.where, given, file, had);
  }
  if (std::find(task.validations.begin(), task.validations.end(), recipe.validation) == task.validations.end()) {
    throw UsageError("validation: unknown value '{}' for task {}", recipe.validation, task.name);
  }
  return recipe;
}

DataPlace locate(const Task& task, const DataChoice& choice, bool of_run) {
  try {
    return task.locate(choice);
  } catch (const InputError& error) {
    if (!of_run) throw;
    throw InputError("{} (the data of the checkpoint's run; --data PATH names another place)", error.what());
  }
}

Json recipe_json(const Recipe& recipe) {
  Json json = recipe_to_json(recipe);
  for (const std::string& name : field_names<Recipe>()) {
    if (!is_model_field(name) && name != "validation" && name != "test_examples") json[name] = nullptr;
  }
  return json;
}

}  // namespace

Record run_evaluation(const Task& task, const CommandLine& line, const RunCircumstances& circumstances, Log& log,
                      std::filesystem::path& folder) {
  const RunOptions& options = line.options;
  refuse_training_options(line);
  const std::filesystem::path file = options.evaluate;
  const ModelConfig config = read_model_config(file);
  const TaskFacts& facts = task.facts();
  if (config.task != facts.name || config.vocabulary != facts.vocabulary || config.classes != facts.classes ||
      config.pair != facts.pair) {
    throw InputError("{}: holds a model of task {} ({} tokens, {} classes), not of {} ({}, {})", file.string(),
                     config.task, config.vocabulary, config.classes, facts.name, facts.vocabulary, facts.classes);
  }
  const std::optional<RunSettings> run = settings_of_run(file, config, facts, log);
  const Recipe recipe = recipe_of(config, facts, line, run);
  const DataChoice choice = data_choice(line, facts, config, run);
  const std::unique_ptr<BatchModel> device = make_backend(options.backend, options.precision, config);
  Classifier model(config, host_precision(options.precision, device.get()));
  load_model(file, model);

  folder =
      options.out.empty() ? file.parent_path() / ("evaluate-" + options.split) : std::filesystem::path(options.out);
  const DataPlace place = locate(task, choice, options.data.empty() && choice.path);
  RunFolder run_folder(folder, options.force ? RunFolder::Use::kForce : RunFolder::Use::kNew);

  DataRequest request;
  request.want_train = options.split == "train";
  request.want_validation = options.split == "validation";
  request.want_test = options.split == "test";
  request.max_length = config.max_length;
  request.limit_train = options.limit_train;
  request.limit_eval = options.limit_eval;
  request.strict = options.strict;
  request.validation = recipe.validation;
  request.pixel_tokens = config.pixel_tokens;
  request.threads = circumstances.threads;
  const TaskData data = task.read(place, request, log, circumstances.progress);
  const DataSplit& split = request.want_train ? *data.train : request.want_validation ? *data.validation : *data.test;
  if (split.size() == 0) throw InputError("{}: the {} split has no good row", place.source, options.split);

  Record record;
  record.started = utc_now();
  record.task = task_record(config);
  record.attention = attention_record(model.config(), device.get());
  record.recipe = recipe_json(recipe);
  record.model = model_record(model);
  record.data = data_record(place, data, options.limit_train, options.limit_eval);
  record.protocol = {.validation = task.validation_text(recipe.validation),
                     .selection = "checkpoint " + file.string(),
                     .order = "sequential"};
  record.environment = environment_record(circumstances.threads, options.backend, options.precision, device.get());
  record.command = circumstances.command;

  const std::string predictions_name = "predictions-" + options.split + ".jsonl";
  run_folder.clear({"metrics.jsonl", "log.txt", "predictions-test.jsonl", "predictions-validation.jsonl",
                    "predictions-train.jsonl"});
  clear_maps(run_folder.file(kMapsFolder));
  log.open(run_folder.file("log.txt"), false);
  for (const std::string& text : data_lines(record.data)) log.line(text);

  std::string predictions;
  Progress progress(log, circumstances.progress, "evaluate", 10.0);
  EvaluationSettings settings;
  settings.limit = request.want_test ? recipe.test_examples : 0;
  settings.batch_size = static_cast<int>(options.eval_batch_size);
  settings.stop = circumstances.stop;
  settings.device = device.get();
  settings.on_progress = [&](int64_t done, int64_t total) { progress.update(done, total); };
  settings.on_prediction = [&](const Prediction& p) {
    const Json json = {{"index", p.index},
                       {"label", p.label},
                       {"predicted", p.predicted},
                       {"probability", std::isfinite(p.probability) ? Json(p.probability) : Json(nullptr)}};
    predictions += dump_json(json) + "\n";
  };
  const auto begin = std::chrono::steady_clock::now();
  const DataExamples examples(split, config);
  const EvaluationResult result = evaluate(model, examples, settings);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  progress.finish();

  if (options.maps > 0) {
    write_maps({.model = model,
                .data = examples,
                .split = options.split,
                .limit = settings.limit,
                .count = options.maps,
                .folder = run_folder.file(kMapsFolder),
                .stop = circumstances.stop},
               log);
  }

  CheckpointMetrics metrics;
  if (request.want_validation) {
    metrics.validation_accuracy = result.accuracy;
    metrics.validation_loss = result.loss;
  } else if (request.want_test) {
    metrics.test_accuracy = result.accuracy;
    metrics.test_loss = result.loss;
    metrics.test_examples = result.examples;
    metrics.test_confusion = result.confusion;
  }
  record.last = metrics;
  record.history = {{.split = options.split,
                     .step = std::nullopt,
                     .loss = result.loss,
                     .accuracy = result.accuracy,
                     .examples = result.examples}};
  record.speed.evaluation_seconds = seconds;
  if (seconds > 0) record.speed.eval_samples_per_second = static_cast<double>(result.examples) / seconds;
  record.speed.peak_rss_bytes = peak_rss_bytes();
  record.status = std::isfinite(result.loss) ? RunStatus::kCompleted : RunStatus::kDiverged;
  if (record.status == RunStatus::kDiverged) record.error = "the loss is not finite";
  record.finished = utc_now();
  write_file_atomic(run_folder.file(predictions_name), predictions);
  LineWriter(run_folder.file("metrics.jsonl"), false).write(dump_json(evaluation_to_json(record.history.front())));
  write_record(run_folder.file(kRecordFile), record);
  return record;
}

}  // namespace lra
