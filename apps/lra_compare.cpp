// lra-compare: compares the records of runs, fairly.
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cxxopts.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lib/util/build_info.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/program.h"
#include "results/comparison_output.h"
#include "results/latex.h"
#include "results/published.h"
#include "results/report.h"

namespace lra {
namespace {

constexpr std::string_view kFormats[] = {"text", "markdown", "csv", "latex", "json", "html"};

constexpr int kPublishedTables = 1000;  // labels of their own behind those of our tables

constexpr const char* kExamples = R"(
Examples:
  lra-compare runs --format html --output report.html
  lra-compare runs/listops results/runs --baseline polynomial:power=3,scale=16 --format markdown --output listops.md
)";

cxxopts::Options make_options() {
  const auto text = [] { return cxxopts::value<std::string>(); };
  cxxopts::Options options("lra-compare",
                           "Compares runs of one task, recipe, data set and protocol: accuracy with intervals over\n"
                           "seeds, tests against a baseline, time, memory. PATH: run folders, folders of them, result\n"
                           "files or patterns. A record that can't be used is named on stderr and left out.\n");
  options.add_options("What")("baseline", "attention that the others are tested against, as its records spell it",
                              text()->default_value("softmax"), "SPEC");
  options.add_options("What")("task", "this one only: listops, text, retrieval, image or pathfinder (default: all)",
                              text(), "TASK");
  options.add_options("What")("allow-mixed",
                              "also show runs of different settings of a task side by side, marked with what differs; "
                              "they are neither averaged nor tested (not with csv and json, which hold every setting "
                              "anyway) (default: each setting by itself)");
  options.add_options("What")("published",
                              "add the figures of papers for the tasks compared, by their set-ups (not with csv) "
                              "(default: none)");
  options.add_options("Output")("format",
                                "text, markdown, csv, latex (tables of the package booktabs), json or html (one page "
                                "with plots, which need gnuplot)",
                                text()->default_value("text"), "WORD");
  options.add_options("Output")("output", "file to write (default: stdout)", text(), "FILE");
  options.add_options("Help")("h,help", "this text")("version", "version, commit and libraries");
  options.add_options("positional")("paths", "", cxxopts::value<std::vector<std::string>>());
  options.positional_help("PATH...");
  options.parse_positional({"paths"});
  options.set_width(110);
  return options;
}

std::string choice(const cxxopts::ParseResult& arguments, const std::string& name,
                   std::span<const std::string_view> choices) {
  auto word = arguments[name].as<std::string>();
  if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
    throw UsageError("--{} {}: want {}", name, word, fmt::join(choices, ", "));
  }
  return word;
}

// The words as typed: cxxopts would cut a list at commas, which paths may hold.
std::vector<std::string> paths_of(const cxxopts::ParseResult& arguments) {
  std::vector<std::string> paths = arguments.unmatched();
  for (const cxxopts::KeyValue& argument : arguments.arguments()) {
    if (argument.key() == "paths") paths.push_back(argument.value());
  }
  if (paths.empty()) throw UsageError("no PATH given: run folders or result files (see lra-compare --help)");
  return paths;
}

struct Output {
  std::string format;
  bool published = false, allow_mixed = false;
};

std::string rendered(const Comparison& comparison, const Output& output) {
  const auto& [format, published, allow_mixed] = output;
  if (format == "csv") return comparison_csv(comparison);
  std::vector<std::string> tasks;  // settings are sorted by task
  for (const Setting& setting : comparison.settings) {
    if (tasks.empty() || tasks.back() != setting.task) tasks.push_back(setting.task);
  }
  if (format == "json") {
    Json json = comparison_json(comparison);
    if (published) json["published"] = published_rows(tasks);
    return dump_json(json, 1) + '\n';
  }
  const Document figures = published ? published_document(tasks) : Document{};
  if (format == "html") {
    Report report = html_report(comparison, {allow_mixed, figures});
    for (const std::string& problem : report.problems) std::cerr << "lra-compare: " << problem << '\n';
    return std::move(report.html);
  }
  if (format == "latex") return comparison_latex(comparison, allow_mixed) + as_latex(figures, kPublishedTables);
  Document document = comparison_document(comparison, allow_mixed);
  document.insert(document.end(), figures.begin(), figures.end());
  return format == "markdown" ? as_markdown(document) : as_text(document);
}

// Whole or not there, as all our files; a device or pipe is written to and not replaced.
void write_output(const std::filesystem::path& path, const std::string& text) {
  std::error_code unknown;
  const std::filesystem::path target = std::filesystem::canonical(path, unknown);  // behind links; empty: none yet
  const bool there = !unknown && std::filesystem::exists(target, unknown);
  if (!there || std::filesystem::is_regular_file(target, unknown)) {
    write_file_atomic(there ? target : path, text);
    return;
  }
  errno = 0;
  std::ofstream stream(target, std::ios::binary);
  stream << text << std::flush;
  if (!stream) throw InputError("cannot write {}: {}", path.string(), std::generic_category().message(errno));
}

// What a user misspelt or has not run yet.
void require_runs(const Comparison& comparison, const cxxopts::ParseResult& arguments, const std::string& task) {
  std::vector<std::string> attentions;
  for (const Setting& setting : comparison.settings) {
    for (const Cell& cell : setting.cells) {
      if (std::find(attentions.begin(), attentions.end(), cell.attention) == attentions.end()) {
        attentions.push_back(cell.attention);
      }
    }
  }
  if (attentions.empty()) {
    throw InputError("nothing to compare: no run{} under {}", task.empty() ? "" : " of task " + task,
                     fmt::join(paths_of(arguments), ", "));
  }
  if (arguments.count("baseline") > 0 &&
      std::find(attentions.begin(), attentions.end(), comparison.baseline) == attentions.end()) {
    throw InputError("--baseline {}: no run of it; there are {}", comparison.baseline, fmt::join(attentions, " "));
  }
}

int run(int argc, char** argv) {
  cxxopts::Options options = make_options();
  const cxxopts::ParseResult arguments = options.parse(argc, argv);
  if (arguments.count("help") > 0) {
    std::cout << options.help({"What", "Output", "Help"}) << kExamples;
    return 0;
  }
  if (arguments.count("version") > 0) {
    std::cout << version_text("lra-compare");
    return 0;
  }
  const std::string format = choice(arguments, "format", kFormats);
  const std::string task = arguments.count("task") > 0 ? choice(arguments, "task", kTaskNames) : "";
  const Output output{format, arguments.count("published") > 0, arguments.count("allow-mixed") > 0};
  if (output.published && format == "csv") throw UsageError("--published: not with --format csv, whose rows are runs");
  if (output.allow_mixed && (format == "csv" || format == "json")) {
    throw UsageError("--allow-mixed: not with --format {}, which holds every setting anyway", format);
  }
  const RecordFiles files = read_records(paths_of(arguments));
  const Comparison comparison = compare(files, arguments["baseline"].as<std::string>(), task);
  for (const std::string& line : comparison.left_out) std::cerr << "lra-compare: left out: " << line << '\n';
  require_runs(comparison, arguments, task);
  const std::string text = rendered(comparison, output);
  if (arguments.count("output") > 0) {
    write_output(arguments["output"].as<std::string>(), text);
  } else {
    std::cout << text;
  }
  return 0;
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  return lra::run_program("lra-compare", [&] { return lra::run(argc, argv); });
}
