#include "tasks/run/diagnostics.h"

#include <algorithm>
#include <system_error>

#include "datasets/png.h"
#include "lib/diagnostics/map_picture.h"
#include "lib/diagnostics/maps.h"
#include "lib/diagnostics/norms.h"
#include "lib/ops/cross_entropy.h"
#include "lib/training/evaluator.h"
#include "lib/training/task_fork.h"
#include "lib/util/check.h"
#include "lib/util/files.h"

namespace lra {

namespace {

constexpr int64_t kNormRows = 32;
constexpr int64_t kSheetExamples = 40;  // of pairs two rows each
static_assert(2 * kSheetExamples <= kMostSheetRows);

// Of more examples than the sheet has room for, evenly spread ones are on it.
bool on_sheet(int64_t i, int64_t count) {
  return count <= kSheetExamples || i == 0 || i * kSheetExamples / count != (i - 1) * kSheetExamples / count;
}

std::string png(const Canvas& canvas) { return write_rgb_png(canvas.width(), canvas.height(), canvas.rgb()); }

}  // namespace

std::vector<Json> norm_lines(const Classifier& model, const ExampleSource& data, int64_t step) {
  std::vector<Example> examples;
  for (int64_t row = 0; row < std::min(kNormRows, data.size()); ++row) examples.push_back(data.get(row));
  const TaskFork fork;
  std::vector<Json> lines;
  for (const AttentionNorms& norms : measure_norms(model, examples, &fork)) {
    lines.push_back(norms_to_json(norms, step));
  }
  return lines;
}

void write_maps(const MapRequest& request, Log& log) {
  const ModelConfig& config = request.model.config();
  if (!request.model.kernel(0).has_weights()) {
    log.line(fmt::format("maps: {} has no attention matrix to draw", config.attention));
    return;
  }
  const int64_t rows = request.limit > 0 ? std::min(request.limit, request.data.size()) : request.data.size();
  const int64_t count = std::min(request.count, rows);
  make_directories(request.folder);
  std::vector<SheetRow> sheet;
  Arena arena;
  for (int64_t i = 0; i < count; ++i) {
    if (request.stop && request.stop()) throw Interrupted();
    const int64_t row = i * rows / count;
    const Example example = request.data.get(row);
    arena.reset();
    ExampleResult result;
    const std::vector<AttentionMap> maps = attention_maps(request.model, example, kMapSide, arena, result);
    const std::string outcome = fmt::format("label {}, predicted {} (label {:.1f} %)", example.label, result.predicted,
                                            100 * probability(result.logits, example.label));
    for (int sequence = 0; sequence < (config.pair ? 2 : 1); ++sequence) {
      const std::string document = config.pair ? fmt::format("-document-{}", sequence + 1) : "";
      const std::string shown = config.pair ? fmt::format(" document {}", sequence + 1) : "";
      SheetRow line;
      int64_t tokens = 0;
      for (const AttentionMap& map : maps) {
        if (map.sequence != sequence) continue;
        tokens = map.tokens;
        const std::string name =
            fmt::format("{}-{}{}-layer-{}-head-{}.png", request.split, row, document, map.layer, map.head);
        const std::string title =
            fmt::format("{} {} {}{}, layer {} head {}", config.task, request.split, row, shown, map.layer, map.head);
        write_file_atomic(request.folder / name, png(draw_map(map, {title, config.attention + "; " + outcome})));
        if (on_sheet(i, count)) line.maps.push_back(map);
      }
      line.label = {fmt::format("{} {}{}", request.split, row, shown), fmt::format("{} tokens", tokens),
                    fmt::format("label {}", example.label), fmt::format("predicted {}", result.predicted)};
      if (on_sheet(i, count)) sheet.push_back(std::move(line));
    }
  }
  write_file_atomic(request.folder / "sheet.png",
                    png(draw_sheet(sheet, fmt::format("{} {}, {}", config.task, request.split, config.attention))));
  log.line(fmt::format("maps: attention of {} {} rows in {}{}", count, request.split, request.folder.string(),
                       count > kSheetExamples ? fmt::format(", {} of them in sheet.png", kSheetExamples) : ""));
}

void clear_maps(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".png") continue;
    std::filesystem::remove(entry.path(), error);
    if (error) throw InputError("cannot remove {}: {}", entry.path().string(), error.message());
  }
}

}  // namespace lra
