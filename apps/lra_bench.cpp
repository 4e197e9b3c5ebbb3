// lra-bench: the machine's FMA peak, and training and evaluation steps as a share of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cxxopts.hpp>
#include <numeric>

#include "benchmarks/fma_peak.h"
#include "benchmarks/norms_bench.h"
#include "benchmarks/step_bench.h"
#include "benchmarks/variants_bench.h"
#include "lib/attention/registry.h"
#include "lib/util/build_info.h"
#include "lib/util/cpu.h"
#include "lib/util/files.h"
#include "lib/util/program.h"
#include "tasks/all_tasks.h"
#include "tasks/run/backend.h"
#include "tasks/run/options.h"

namespace lra {
namespace {

constexpr const char* kExamples = R"(
What to measure: peak | train | eval | variants | norms
variants: training steps of every attention variant (or of the --attention given, repeatable) relative to softmax at
each of --lengths. Batch: one example a thread unless said. Memory: the most scratch in use while an example is trained.
norms: ‖P‖ and ‖dP/dS‖ of the first layer at the start values, at each of --lengths, over --batch-size examples
(default 4).

Examples:
  lra-bench train --attention softmax --length 2048 --threads 2
  lra-bench eval --task retrieval --attention polynomial:power=1,scale=sqrt --batch-size 8 --json
  lra-bench variants --threads 2 --output variants.json --plot variants.svg
)";

// Recipe fields that have an option of their own.
const char* const kDirectFields[] = {"batch_size", "layers", "heads", "dim", "hidden", "dropout", "attention_dropout"};

cxxopts::Options make_options() {
  cxxopts::Options options("lra-bench",
                           "Speed and memory of training and evaluation steps, against this machine's FMA peak.");
  options.positional_help("peak|train|eval|variants|norms").set_width(100);
  options.add_options("What")("mode", "peak, train, eval, variants or norms", cxxopts::value<std::string>())(
      "task", "whose sizes to take: listops, text, retrieval, image or pathfinder",
      cxxopts::value<std::string>()->default_value("listops"))("attention", "attention spec; list prints all",
                                                               cxxopts::value<std::string>()->default_value("softmax"))(
      "length", "tokens an example, a document in pair tasks (default: the recipe's max_length)",
      cxxopts::value<std::string>());
  options.add_options("Sizes")("recipe", "recipe name or file",
                               cxxopts::value<std::string>()->default_value(recipe_names().front()))(
      "set", "KEY=VALUE, any recipe field; repeatable (default: none)", cxxopts::value<std::vector<std::string>>());
  for (const std::string name : kDirectFields) {
    options.add_options("Sizes")(option_name(name), "recipe field (default: the recipe's)",
                                 cxxopts::value<std::string>());
  }
  options.add_options("Measuring")("threads", "threads",
                                   cxxopts::value<std::string>()->default_value(std::to_string(default_threads())))(
      "backend", "train, eval: cpu or cuda", cxxopts::value<std::string>()->default_value("cpu"))(
      "precision", "float32 or bfloat16; with cuda also tf32", cxxopts::value<std::string>()->default_value("float32"))(
      "seconds", "timed seconds, at least", cxxopts::value<std::string>()->default_value("3"))(
      "repeats", "timed steps, at least", cxxopts::value<std::string>()->default_value("5"))(
      "lengths", "variants, norms: tokens an example, with commas (default: 1024,2048,4096)",
      cxxopts::value<std::string>())("quick",
                                     "variants: short lengths and times, to see that all works (default: false)")(
      "output", "variants, norms: write all rows into this JSON file (default: none)", cxxopts::value<std::string>())(
      "plot", "variants: draw the relative times into this SVG file (default: none)", cxxopts::value<std::string>())(
      "profile", "also where the time goes, in shares of all threads' time (default: false)")(
      "json", "print one JSON object (default: false)");
  options.add_options("Help")("help", "print this help")("version", "print version, commit and libraries");
  options.parse_positional({"mode"});
  return options;
}

// The number behind an option, within its range.
template <class T>
T number(const cxxopts::ParseResult& arguments, const std::string& option, double least, double most) {
  T value{};
  parse_field(Field{.name = option, .least = least, .most = most}, "--" + option, arguments[option].as<std::string>(),
              value);
  return value;
}

constexpr double kMostTokens = 1048576;

// length: 0 for the recipe's own.
Recipe make_recipe(const cxxopts::ParseResult& arguments, const TaskFacts& task, int64_t length) {
  Recipe recipe = load_recipe(arguments["recipe"].as<std::string>(), task);
  if (length != 0) {
    recipe.max_length = length;
    recipe.padded_length = 0;
  }
  const auto items =
      arguments.count("set") != 0 ? arguments["set"].as<std::vector<std::string>>() : std::vector<std::string>();
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos) throw UsageError("--set {}: want KEY=VALUE", item);
    set_field(recipe, item.substr(0, equals), "--set " + item, item.substr(equals + 1));
  }
  for (const std::string field : kDirectFields) {
    const std::string option = option_name(field);
    if (arguments.count(option) != 0) set_field(recipe, field, "--" + option, arguments[option].as<std::string>());
  }
  resolve_recipe(recipe, task);
  return recipe;
}

void print_step(const std::string& mode, const std::string& task, const std::string& attention, const Recipe& recipe,
                const std::string& precision, int threads, const BatchModel* device, const StepBenchResult& r,
                bool json) {
  if (json) {
    Json object = {{"mode", mode},
                   {"device", device != nullptr ? Json(device->device_name()) : Json(nullptr)},
                   {"task", task},
                   {"attention", attention},
                   {"length", recipe.max_length},
                   {"batch_size", recipe.batch_size},
                   {"threads", threads},
                   {"precision", precision},
                   {"dropout", recipe.dropout},
                   {"attention_dropout", recipe.attention_dropout}};
    object.update(to_json(r));
    fmt::print("{}\n", dump_json(object));
    return;
  }
  fmt::print("{:<30}{:>7}{:>7}{:>9}{:>11}{:>9}{:>10}{:>8}{:>9}\n", mode + " step", "length", "batch", "threads",
             "ms/sample", "(best)", "GFLOP/s", "peak", "memory");
  fmt::print("{:<30}{:>7}{:>7}{:>9}{:>11.3f}{:>9.3f}{:>10.1f}{:>8}{:>6.0f} MB\n",
             attention + (precision == "float32" ? "" : " " + precision), recipe.max_length, recipe.batch_size, threads,
             r.ms_per_sample, r.ms_per_sample_min, r.gflops,
             device != nullptr ? "-" : fmt::format("{:.1f}%", 100 * r.share_of_peak),
             static_cast<double>(r.peak_rss_bytes) * 1e-6);
  if (device != nullptr) {
    fmt::print("on {}; {} repeats; {:.3f} GFLOP a sample; memory of the host\n", device->device_name(), r.repeats,
               r.flops_per_sample * 1e-9);
    return;
  }
  fmt::print("peak {:.1f} GFLOP/s measured here on {} thread{}; {} repeats; {:.3f} GFLOP a sample\n", r.peak_gflops,
             threads, threads == 1 ? "" : "s", r.repeats, r.flops_per_sample * 1e-9);
  const double booked = std::accumulate(r.phases.begin(), r.phases.end(), 0.0);
  if (booked == 0.0) return;
  std::vector<std::pair<double, std::string>> rows = {{r.thread_seconds - booked, "idle, other"}};
  for (int i = 1; i < kPhaseCount; ++i) rows.emplace_back(r.phases[i], phase_name(static_cast<Phase>(i)));
  std::sort(rows.rbegin(), rows.rend());
  for (const auto& [seconds, name] : rows) {
    if (seconds > 0.0) fmt::print("  {:<28}{:>6.1f}%\n", name, 100 * seconds / r.thread_seconds);
  }
}

// The numbers of "1024,2048".
std::vector<int64_t> lengths_of(const std::string& text) {
  std::vector<int64_t> lengths;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t& length = lengths.emplace_back();
    parse_field(Field{.name = "lengths", .least = 1, .most = kMostTokens}, "--lengths", text.substr(begin, end - begin),
                length);
    begin = end + 1;
  }
  return lengths;
}

// The --attention given, or the others; checked before anything is measured.
std::vector<std::string> attentions_of(const cxxopts::ParseResult& arguments, std::vector<std::string> others) {
  std::vector<std::string> given;
  for (const cxxopts::KeyValue& argument : arguments.arguments()) {
    if (argument.key() == "attention") given.push_back(argument.value());
  }
  if (given.empty()) given = std::move(others);
  for (const std::string& attention : given) parse_attention(attention);
  return given;
}

std::string ratio_text(double ratio) { return fmt::format("{:.2f}x", ratio); }

void run_variants(const cxxopts::ParseResult& arguments, const TaskFacts& facts, VariantsSettings settings,
                  const std::string& precision) {
  const bool quick = arguments.count("quick") != 0;
  const std::string lengths = arguments.count("lengths") != 0 ? arguments["lengths"].as<std::string>()
                              : quick                         ? "128,256"
                                                              : "1024,2048,4096";
  if (quick && arguments.count("seconds") == 0) settings.seconds = 0.05;
  if (quick && arguments.count("repeats") == 0) settings.repeats = 3;
  settings.attentions = attentions_of(arguments, all_variants());
  std::vector<Recipe> recipes;
  for (const int64_t length : lengths_of(lengths)) {
    recipes.push_back(make_recipe(arguments, facts, length));
    if (arguments.count("batch-size") == 0) recipes.back().batch_size = settings.threads;
  }
  const bool json = arguments.count("json") != 0;
  std::vector<VariantResult> results;
  for (const Recipe& recipe : recipes) {
    if (!json) {
      fmt::print("{:<34}{:>8}{:>11}{:>9}{:>12}{:>9}{:>10}{:>9}\n",
                 fmt::format("training, {} tokens", recipe.max_length), "batch", "ms/sample", "relative", "GFLOP",
                 "relative", "scratch", "relative");
    }
    bench_variants(recipe, facts, settings, [&](const VariantResult& r) {
      results.push_back(r);
      if (json) return;
      if (!r.error.empty()) {
        fmt::print("{:<34}  {}\n", r.attention, r.error);
      } else {
        fmt::print("{:<34}{:>8}{:>11.3f}{:>9}{:>12.3f}{:>9}{:>7.1f} MB{:>9}\n", r.attention, recipe.batch_size,
                   r.ms_per_sample, ratio_text(r.relative_time), r.flops_per_sample * 1e-9,
                   ratio_text(r.relative_flops), static_cast<double>(r.scratch_bytes) * 1e-6,
                   ratio_text(r.relative_scratch));
      }
      std::fflush(stdout);
    });
  }
  Json rows = Json::array();
  for (const VariantResult& result : results) rows.push_back(to_json(result));
  const Recipe& recipe = recipes.front();
  const Json document = {{"mode", "variants"},
                         {"task", facts.name},
                         {"batch_size", recipe.batch_size},
                         {"threads", settings.threads},
                         {"precision", precision},
                         {"dropout", recipe.dropout},
                         {"attention_dropout", recipe.attention_dropout},
                         {"cpu", cpu_name()},
                         {"instruction_set", instruction_set()},
                         {"rows", rows}};
  if (json) fmt::print("{}\n", dump_json(document));
  if (arguments.count("output") != 0) {
    write_file_atomic(arguments["output"].as<std::string>(), dump_json(document, 1) + "\n");
  }
  if (arguments.count("plot") != 0) {
    const std::string title = fmt::format("Training step of {} relative to softmax, {} thread{} of {}", facts.name,
                                          settings.threads, settings.threads == 1 ? "" : "s", cpu_name());
    write_file_atomic(arguments["plot"].as<std::string>(), plot_variants(results, title));
  }
}

void run_norms(const cxxopts::ParseResult& arguments, const TaskFacts& facts, int threads) {
  const std::string lengths =
      arguments.count("lengths") != 0 ? arguments["lengths"].as<std::string>() : "1024,2048,4096";
  const bool json = arguments.count("json") != 0;
  const auto text = [](double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; };
  const std::vector<std::string> attentions = attentions_of(arguments, {"softmax", "polynomial"});
  const std::vector<int64_t> tokens = lengths_of(lengths);  // before anything is measured or printed
  Json rows = Json::array();
  if (!json) {
    fmt::print("{:<34}{:>8}{:>12}{:>12}{:>16}{:>12}\n", "norms at the start values", "tokens", "|P|", "|dP/dS|",
               "|dL/dS|", "max |S|");
  }
  for (const std::string& attention : attentions) {
    for (const int64_t length : tokens) {
      const Recipe recipe = make_recipe(arguments, facts, length);
      const int examples = arguments.count("batch-size") != 0 ? static_cast<int>(recipe.batch_size) : 4;
      const StartNorms norms = measure_start_norms(recipe, facts, attention, examples, threads);
      rows.push_back(to_json(norms));
      if (json) continue;
      fmt::print("{:<34}{:>8}{:>12}{:>12}{:>16}{:>12}\n", norms.attention, norms.length, text(norms.frobenius),
                 text(norms.jacobian), text(norms.score_gradient), text(norms.max_score));
      std::fflush(stdout);
    }
  }
  const Json document = {{"mode", "norms"}, {"task", facts.name}, {"rows", rows}};
  if (json) fmt::print("{}\n", dump_json(document));
  if (arguments.count("output") != 0) {
    write_file_atomic(arguments["output"].as<std::string>(), dump_json(document, 1) + "\n");
  }
}

int run(int argc, char** argv) {
  cxxopts::Options options = make_options();
  const cxxopts::ParseResult arguments = options.parse(argc, argv);
  if (arguments.count("help") != 0) {
    fmt::print("{}{}", options.help({"What", "Sizes", "Measuring", "Help"}), kExamples);
    return 0;
  }
  if (arguments.count("version") != 0) {
    fmt::print("{}\n", version_text("lra-bench"));
    return 0;
  }
  if (!arguments.unmatched().empty()) throw UsageError("'{}' is one word too many", arguments.unmatched().front());
  const std::string attention = arguments["attention"].as<std::string>();
  if (attention == "list") {
    fmt::print("{}", attention_list());
    return 0;
  }
  if (arguments.count("mode") == 0) throw UsageError("say what to measure: peak, train, eval, variants or norms");
  const std::string mode = arguments["mode"].as<std::string>();
  const int threads = static_cast<int>(number<int64_t>(arguments, "threads", 1, 4096));
  const double seconds = number<double>(arguments, "seconds", 0.01, 3600);
  const bool json = arguments.count("json") != 0;
  const bool variants = mode == "variants";
  const bool norms = mode == "norms";
  if (mode != "peak" && mode != "train" && mode != "eval" && !variants && !norms) {
    throw UsageError("'{}': want peak, train, eval, variants or norms", mode);
  }
  for (const char* option : {"lengths", "output"}) {
    if (!variants && !norms && arguments.count(option) != 0) {
      throw UsageError("--{}: only with variants and norms", option);
    }
  }
  for (const char* option : {"quick", "plot"}) {
    if (!variants && arguments.count(option) != 0) throw UsageError("--{}: only with variants", option);
  }
  for (const char* option : {"seconds", "repeats", "precision"}) {
    if (norms && arguments.count(option) != 0) throw UsageError("--{}: not with norms", option);
  }
  for (const char* option : {"length", "profile", "backend"}) {
    if (mode != "train" && mode != "eval" && arguments.count(option) != 0)
      throw UsageError("--{}: not with {}", option, mode);
  }
  if (mode == "peak") {
    const double peak = measure_fma_peak(threads, seconds), bfloat16 = measure_bfloat16_peak(threads, seconds);
    if (json) {
      fmt::print("{}\n", dump_json({{"threads", threads},
                                    {"peak_gflops", peak},
                                    {"bfloat16_peak_gflops", bfloat16 > 0.0 ? Json(bfloat16) : Json(nullptr)},
                                    {"instruction_set", instruction_set()}}));
    } else {
      fmt::print("{:.1f} GFLOP/s float32 FMA on {} thread{} ({}, {})\n", peak, threads, threads == 1 ? "" : "s",
                 cpu_name(), instruction_set());
      if (bfloat16 > 0.0) fmt::print("{:.1f} GFLOP/s bfloat16 products with float32 sums\n", bfloat16);
    }
    return 0;
  }
  const std::string precision_name = arguments["precision"].as<std::string>();
  const std::string backend = arguments["backend"].as<std::string>();
  if (backend != "cpu" && backend != "cuda") throw UsageError("--backend {}: want cpu or cuda", backend);
  if (backend == "cuda" && arguments.count("profile") != 0) throw UsageError("--profile: not with --backend cuda");
  if (precision_name != "float32" && precision_name != "bfloat16" && (backend == "cpu" || precision_name != "tf32")) {
    throw UsageError("--precision {}: must be float32 or bfloat16, or tf32 with --backend cuda", precision_name);
  }
  const Precision precision = backend == "cpu" ? precision_named(precision_name) : Precision::kFloat32;
  const TaskFacts facts = make_task("--task", arguments["task"].as<std::string>())->facts();
  if (norms) {
    run_norms(arguments, facts, threads);
    return 0;
  }
  const int repeats = static_cast<int>(number<int64_t>(arguments, "repeats", 1, 1000000));
  if (variants) {
    run_variants(arguments, facts, {{}, threads, seconds, repeats, precision}, precision_name);
    return 0;
  }
  const int64_t length =
      arguments.count("length") != 0 ? number<int64_t>(arguments, "length", 1, kMostTokens) : int64_t{0};
  const Recipe recipe = make_recipe(arguments, facts, length);
  const std::unique_ptr<BatchModel> device =
      make_backend(backend, precision_name, model_config(recipe, facts, parse_attention(attention).canonical()));
  StepBenchSettings settings;
  settings.device = device.get();
  settings.training = mode == "train";
  settings.attention = attention;
  settings.precision = precision;
  settings.profile = arguments.count("profile") != 0;
  settings.threads = threads;
  settings.seconds = seconds;
  settings.repeats = repeats;
  const StepBenchResult result = bench_step(recipe, facts, settings);
  print_step(mode, facts.name, parse_attention(attention).canonical(), recipe, precision_name, threads, device.get(),
             result, json);
  return 0;
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  return lra::run_program("lra-bench", [&] { return lra::run(argc, argv); });
}
