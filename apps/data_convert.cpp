// lra-data convert-checkpoint: a checkpoint of the Nystroemformer paper's LRA code becomes one of ours.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "apps/data_commands.h"
#include "lib/attention/registry.h"
#include "lib/util/check.h"
#include "tasks/all_tasks.h"
#include "tasks/nystromformer_checkpoint.h"

namespace lra {
namespace {

constexpr const char* kExamples =
    R"(  lra-data convert-checkpoint listops_softmax.safetensors ours.safetensors
  lra-data convert-checkpoint text_cls.safetensors ours.safetensors --task text --set pooling=cls
)";

}  // namespace

int data_convert(int argc, char** argv) {
  cxxopts::Options options("lra-data convert-checkpoint",
                           "Reads the state dict of mlpen/Nystromformer's LRA classifier, saved with\n"
                           "safetensors.torch.save_file, and writes it under our names for --evaluate and --init.\n");
  options.add_options()(
      "task",
      "task it was trained on (default: the only one with the file's vocabulary, classes and documents; of text "
      "and pathfinder needed)",
      cxxopts::value<std::string>(),
      "TASK")("attention",
              "attention spec it was trained with; not nystrom and linformer, whose own tensors have no place here",
              cxxopts::value<std::string>()->default_value("softmax"), "SPEC")(
      "set",
      "field of the recipe nystromformer that the file cannot tell (heads, pooling, max_length); repeatable (default: "
      "none)",
      cxxopts::value<std::vector<std::string>>(), "KEY=VALUE")("force", "overwrite OUT (default: false)");
  options.add_options("positional")("in", "", cxxopts::value<std::string>())("out", "", cxxopts::value<std::string>());
  options.positional_help("IN OUT");
  options.parse_positional({"in", "out"});
  const auto arguments = parse_data_command(options, kExamples, argc, argv);
  if (!arguments) return 0;
  if (arguments->count("in") == 0 || arguments->count("out") == 0) {
    throw UsageError("convert-checkpoint: want IN OUT, two safetensors files");
  }
  const std::filesystem::path in = (*arguments)["in"].as<std::string>(), out = (*arguments)["out"].as<std::string>();
  const std::string attention = parse_attention((*arguments)["attention"].as<std::string>()).canonical();
  require_convertible(attention);
  const std::unique_ptr<Task> task = make_task(
      "--task", arguments->count("task") > 0 ? (*arguments)["task"].as<std::string>() : task_of_nystromformer(in));
  Recipe recipe = load_recipe("nystromformer", task->facts());
  if (arguments->count("set") > 0) {
    for (const std::string& change : (*arguments)["set"].as<std::vector<std::string>>()) {
      const size_t equals = change.find('=');
      if (equals == std::string::npos || equals == 0) throw UsageError("--set: '{}' is not KEY=VALUE", change);
      set_field(recipe, field_key(change.substr(0, equals)), "--set", change.substr(equals + 1));
    }
  }
  if (arguments->count("force") == 0 && std::filesystem::exists(out)) {
    throw UsageError("{}: exists already; --force overwrites it", out.string());
  }
  convert_nystromformer(in, out, task->facts(), recipe, attention);
  std::cout << fmt::format("{}: {} with {}, from {}\n", out.string(), task->facts().name, attention, in.string());
  return 0;
}

}  // namespace lra
