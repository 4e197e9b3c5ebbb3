// lra-data show: prints or draws examples as a model gets them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "apps/data_commands.h"
#include "apps/data_picture.h"
#include "datasets/listops/tokens.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/log.h"
#include "tasks/all_tasks.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples = R"(  lra-data show listops data/listops --split train --index 100 --count 3
  lra-data show pathfinder data/pathfinder --count 16 --out pictures.png
)";

const std::vector<std::string> kStyles = {"auto", "24bit", "256", "unicode", "ascii", "none"};

struct ShowOptions {
  Split split = Split::kTest;
  int64_t index = 0, count = 1;
  std::string draw = "auto";
  int columns = 0;  // of a drawing
  fs::path out;     // empty: no PNG
  int scale = 1;
  bool force = false;
};

Split parse_split(const std::string& name) {
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    if (name == split_name(split)) return split;
  }
  throw UsageError("--split {}: must be train, validation or test", name);
}

ShowOptions show_options(const cxxopts::ParseResult& arguments, const TaskFacts& facts) {
  for (const char* option : {"draw", "width", "out", "scale", "force"}) {
    if (!facts.pictures && arguments.count(option) > 0) {
      throw UsageError("--{}: task {} has no pictures", option, facts.name);
    }
  }
  ShowOptions show;
  show.split = parse_split(arguments["split"].as<std::string>());
  show.index = static_cast<int64_t>(data_number(arguments, "index", 0, kMostRows));
  show.count = static_cast<int64_t>(data_number(arguments, "count", 1, kMostRows));
  show.draw = data_choice(arguments, "draw", kStyles);
  show.columns = static_cast<int>(data_number(arguments, "width", 0, 10000));
  show.scale = static_cast<int>(data_number(arguments, "scale", 1, 64));
  show.force = arguments.count("force") > 0;
  if (arguments.count("out") > 0) {
    show.out = arguments["out"].as<std::string>();
    if (show.out.empty()) throw UsageError("--out needs the name of a file that ends in .png, or of a folder");
  }
  return show;
}

std::string joined(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += fmt::format(" {}", id);
  return text;
}

std::span<const int32_t> cut(const std::vector<int32_t>& ids, int64_t max_length) {
  const std::span<const int32_t> all = ids;
  return max_length > 0 && all.size() > static_cast<size_t>(max_length) ? all.first(static_cast<size_t>(max_length))
                                                                        : all;
}

std::string length_text(std::span<const int32_t> ids, const std::vector<int32_t>& whole) {
  std::string text = fmt::format("{} tokens", ids.size());
  if (ids.size() < whole.size()) text += fmt::format(", cut from {}", whole.size());
  return text;
}

void print_head(const Task& task, Split split, int64_t index, int32_t label) {
  const std::string name = label_name(task.facts().name, label);
  std::cout << fmt::format("{} {}\n  label   {}{}\n", split_name(split), index, label,
                           name.empty() ? "" : fmt::format(" ({})", name));
}

void print_text(const Task& task, const DataExample& example, int64_t max_length) {
  const std::span<const int32_t> ids = cut(example.ids, max_length);
  if (task.facts().pair) {
    const std::span<const int32_t> ids2 = cut(example.ids2, max_length);
    std::cout << fmt::format("  first   {}\n  text    {}\n  ids    {}\n", length_text(ids, example.ids), task.text(ids),
                             joined(ids));
    std::cout << fmt::format("  second  {}\n  text    {}\n  ids    {}\n", length_text(ids2, example.ids2),
                             task.text(ids2), joined(ids2));
    return;
  }
  const bool listops = task.facts().name == "listops";
  if (listops) {
    // The value is that of the whole expression, whatever the model gets of it.
    const std::vector<uint8_t> tokens(example.ids.begin(), example.ids.end());
    listops::Evaluator evaluator;
    std::cout << fmt::format("  value   {}{}\n", evaluator.evaluate(tokens),
                             ids.size() < example.ids.size() ? " (of the uncut expression)" : "");
  }
  std::cout << fmt::format("  length  {}\n  {}{}\n  ids    {}\n", length_text(ids, example.ids),
                           listops ? "tokens  " : "text    ", task.text(ids), joined(ids));
}

// Shows pictures one after another: in the terminal, or as PNG files.
class PictureShow {
 public:
  PictureShow(const Task& task, const DataReading& reading, const ShowOptions& show, int64_t count)
      : task_(task), reading_(reading), show_(show), count_(count), sheet_(show.out.extension() == ".png") {
    if (sheet_) refuse_existing(show.out);
  }

  void add(int64_t index, const DataExample& example) {
    const std::span<const int32_t> ids = cut(example.ids, reading_.max_length);
    const bool raw = reading_.request.pixel_tokens == "raw";
    const auto side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(example.ids.size()))));
    check(static_cast<size_t>(side) * static_cast<size_t>(side) == example.ids.size(), "a picture of {} pixels",
          example.ids.size());
    refuse_too_large(side);
    std::cout << "  length  " << length_text(ids, example.ids);
    if (raw) {
      std::cout << fmt::format(", {} of them real (black pixels are padding)",
                               ids.size() - static_cast<size_t>(std::count(ids.begin(), ids.end(), 0)));
    }
    std::cout << '\n';
    GreyPicture picture{side, side, std::vector<uint8_t>(example.ids.size())};
    std::transform(ids.begin(), ids.end(), picture.pixels.begin(),
                   [&](int32_t id) { return static_cast<uint8_t>(raw ? id : id - 1); });
    draw(picture);
    if (sheet_) {
      pictures_.push_back(std::move(picture));
    } else if (!show_.out.empty()) {
      make_directories(show_.out);
      write(show_.out / fmt::format("{}-{}-{}.png", task_.facts().name, split_name(show_.split), index), picture);
    }
  }

  void finish() {
    if (!sheet_) return;
    write(show_.out, contact_sheet(pictures_, kGap));
  }

 private:
  void draw(const GreyPicture& picture) const {
    if (show_.draw == "none" || (show_.draw == "auto" && !show_.out.empty())) return;
    const DrawStyle style = show_.draw == "24bit"     ? DrawStyle::k24bit
                            : show_.draw == "256"     ? DrawStyle::k256
                            : show_.draw == "unicode" ? DrawStyle::kUnicode
                            : show_.draw == "ascii"   ? DrawStyle::kAscii
                                                      : stdout_style();
    std::cout << draw_picture(picture, style, show_.columns > 0 ? show_.columns : stdout_columns());
  }

  void refuse_existing(const fs::path& path) const {
    std::error_code ignored;
    if (!show_.force && fs::exists(fs::symlink_status(path, ignored))) {
      throw UsageError("{}: exists already; --force overwrites it", path.string());
    }
  }

  // Before the first picture is kept.
  void refuse_too_large(int side) const {
    const int64_t columns = sheet_ ? sheet_columns(count_) : 1;
    const int64_t pixels = (columns * (side + kGap) - kGap) * show_.scale;
    if (!show_.out.empty() && pixels > kLargestPngSide) {
      throw UsageError("--scale {}: a PNG {} pixels wide is too large, at most {}{}", show_.scale, pixels,
                       kLargestPngSide, sheet_ ? "; want a smaller --scale or --count, or a folder as --out" : "");
    }
  }

  void write(const fs::path& path, const GreyPicture& picture) const {
    refuse_existing(path);
    write_file_atomic(path, write_grey_png(enlarge(picture, show_.scale)));
    std::cout << fmt::format("{}{}\n", sheet_ ? "" : "  file    ", path.string());
  }

  static constexpr int kGap = 1;  // between the pictures of a sheet, in their pixels

  const Task& task_;
  const DataReading& reading_;
  const ShowOptions& show_;
  int64_t count_;  // of pictures to come
  bool sheet_;     // all into one file
  std::vector<GreyPicture> pictures_;
};

// The first rows of the split that is shown, and no other split.
std::unique_ptr<DataSplit> read_rows(const Task& task, const DataReading& reading, const ShowOptions& show) {
  DataRequest request = reading.request;
  request.max_length = kUncut;
  request.want_train = show.split == Split::kTrain;
  request.want_validation = show.split == Split::kValidation;
  request.want_test = show.split == Split::kTest;
  request.limit_train = request.limit_eval = show.index + show.count;
  Log log;
  TaskData data = task.read(reading.place, request, log, progress_mode("auto"));
  switch (show.split) {
    case Split::kTrain: return std::move(data.train);
    case Split::kValidation: return std::move(data.validation);
    case Split::kTest: return std::move(data.test);
  }
  return nullptr;
}

cxxopts::Options make_options() {
  const auto text = [] { return cxxopts::value<std::string>(); };
  cxxopts::Options options("lra-data show",
                           "Prints or draws examples of a data set as a model gets them.\n"
                           "TASK: listops, text, retrieval, image or pathfinder\n");
  options.add_options()("split", "train, validation or test", text()->default_value("test"), "NAME")(
      "index", "first example, from 0; bad rows do not count", text()->default_value("0"), "I")(
      "count", "how many examples", text()->default_value("1"), "N");
  add_reading_options(options);
  options.add_options("Pictures")("draw",
                                  "auto (what the terminal can show; nothing with --out), 24bit, 256, unicode, "
                                  "ascii or none",
                                  text()->default_value("auto"), "WORD")(
      "width", "characters a line at most; 0: the terminal's, else 80", text()->default_value("0"), "N")(
      "out", "write PNG: FILE.png, with --count all on one sheet, or a folder for a file each (default: drawn here)",
      text(), "PATH")("scale", "pixels of the PNG a pixel of the picture", text()->default_value("8"), "N")(
      "force", "overwrite files that exist (default: false)");
  return options;
}

}  // namespace

int data_show(int argc, char** argv) {
  cxxopts::Options options = make_options();
  const auto arguments = parse_data_command(options, kExamples, argc, argv, {"", "Pictures"});
  if (!arguments) return 0;
  const std::unique_ptr<Task> task = make_task("show", data_task_name(*arguments, "show", task_names()));
  const ShowOptions show = show_options(*arguments, task->facts());
  const DataReading reading = data_reading(*arguments, "show", *task);
  const std::unique_ptr<DataSplit> rows = read_rows(*task, reading, show);
  for (const Skipped& skipped : rows->skipped()) {
    std::cerr << fmt::format("left out: {}, {} row{}, the first {}\n", skipped.reason, skipped.count,
                             skipped.count == 1 ? "" : "s", skipped.first);
  }
  if (show.index >= rows->size()) {
    throw InputError("{}: {} has {} good rows; --index {} is past the last", reading.place.path.string(),
                     split_name(show.split), rows->size(), show.index);
  }
  const int64_t end = std::min(rows->size(), show.index + show.count);
  PictureShow pictures(*task, reading, show, end - show.index);
  for (int64_t i = show.index; i < end; ++i) {
    const DataExample example = rows->get(i);
    print_head(*task, show.split, i, example.label);
    if (task->facts().pictures) {
      pictures.add(i, example);
    } else {
      print_text(*task, example, reading.max_length);
    }
  }
  pictures.finish();
  return 0;
}

}  // namespace lra
