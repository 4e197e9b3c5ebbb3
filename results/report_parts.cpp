// What the parts of a report share, attention maps, and where each run comes from.
#include "results/report_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/program.h"
#include "results/comparison_blocks.h"
#include "results/html.h"

namespace lra {

namespace {

namespace fs = std::filesystem;

constexpr size_t kFoldersNamed = 6;
constexpr size_t kMapsOfCell = 4;
constexpr uintmax_t kMapBytes = 8u << 20;  // of all pictures, before they are written in base64
constexpr std::string_view kPngHead = "\x89PNG\r\n\x1a\n";

// The contact sheet of the first run that has maps, or else its first pictures.
std::vector<fs::path> maps_of(const Cell& cell) {
  for (const RecordFile* run : cell.runs) {
    const fs::path folder = run->path.parent_path() / "maps";
    std::vector<fs::path> pictures;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".png") pictures.push_back(entry->path());
    }
    if (pictures.empty()) continue;
    std::sort(pictures.begin(), pictures.end());
    if (std::find(pictures.begin(), pictures.end(), folder / "sheet.png") != pictures.end())
      return {folder / "sheet.png"};
    return pictures;
  }
  return {};
}

// Empty, with a note of why, where the picture does not go in.
std::string map_html(ReportContext& context, const fs::path& file, const std::string& caption) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  if (error) {
    context.note(fmt::format("{}: {}", file.string(), error.message()));
    return "";
  }
  if (context.map_bytes + size > kMapBytes) {
    context.note(fmt::format("{}: left out, a report holds {} MB of attention maps", file.string(), kMapBytes >> 20));
    return "";
  }
  std::string bytes;
  try {
    bytes = read_file(file);
  } catch (const InputError& problem) {
    context.note(problem.what());
    return "";
  }
  if (!bytes.starts_with(kPngHead)) {
    context.note(file.string() + ": not a PNG picture");
    return "";
  }
  context.map_bytes += size;
  return fmt::format(
      "<figure><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"><figcaption>{0}</figcaption></figure>\n",
      html_escaped(caption), base64(bytes));
}

std::vector<std::string> provenance_row(const Setting& setting, const Cell& cell, const RecordFile& run) {
  const Record& r = run.record;
  const EnvironmentRecord& e = r.environment;
  const auto hash = [](const std::optional<SplitRecord>& split) { return split ? split->hash : std::string("-"); };
  const auto step = [](const std::optional<CheckpointMetrics>& m) {
    return m && m->step ? std::to_string(*m->step) : std::string("-");
  };
  return {run.path.parent_path().string(),
          setting.task,
          setting.id,
          cell.attention,
          r.seed ? std::to_string(*r.seed) : "-",
          r.error ? fmt::format("{}: {}", status_name(r.status), *r.error) : status_name(r.status),
          step(r.last),
          step(r.best),
          e.commit + (e.dirty ? " (changed)" : ""),
          fmt::format("{} {}", e.compiler, e.build),
          e.gpu ? *e.gpu : e.cpu,
          e.instruction_set,
          e.backend,
          std::to_string(e.threads),
          std::to_string(e.ranks),
          e.precision,
          hash(r.data.train),
          hash(r.data.validation),
          hash(r.data.test),
          r.started,
          r.finished.value_or("-")};
}

}  // namespace

Names::Names(const Comparison& comparison) {
  order_.emplace(comparison.baseline, 0);
  for (const Setting& setting : comparison.settings) {
    for (const Cell& cell : setting.cells) order_.emplace(cell.attention, static_cast<int>(order_.size()));
  }
}

std::string Names::letter(const std::string& attention) const {
  std::string letters;
  for (int i = order(attention) + 1; i > 0; i = (i - 1) / 26)
    letters.insert(letters.begin(), static_cast<char>('A' + (i - 1) % 26));
  return letters;
}

int style_in(const Setting& setting, const std::string& attention) {
  int place = 0;
  for (const Cell& cell : setting.cells) {
    if (cell.attention == attention) break;
    if (!cell.runs.empty()) ++place;
  }
  return place;
}

const RunLog& ReportContext::log(const RecordFile& run) {
  const auto found = logs_.find(&run);
  if (found != logs_.end()) return found->second;
  RunLog& log = logs_[&run] = read_run_log(run);
  for (const std::string& problem : log.problems) note(problem);
  return log;
}

void ReportContext::note_missing_logs() {
  std::vector<std::string> folders;
  for (const auto& [run, log] : logs_) {
    if (!log.has_metrics) folders.push_back(run->path.parent_path().string());
  }
  if (folders.empty()) return;
  std::sort(folders.begin(), folders.end());
  const size_t named = std::min(folders.size(), kFoldersNamed), more = folders.size() - named;
  folders.resize(named);
  note(fmt::format("no metrics.jsonl, hence no training loss, and validation from the record: {}{}",
                   fmt::join(folders, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

void ReportContext::note(std::string problem) {
  problem = one_line(std::move(problem));
  if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(std::move(problem));
}

std::string ReportContext::around(const std::string& svg, const std::string& title, const std::string& caption,
                                  const Table& table) {
  return fmt::format(
      "<figure>\n<h4>{}</h4>\n{}<figcaption>{}</figcaption>\n<details{}><summary>Table</summary>\n{}</details>\n</"
      "figure>\n",
      html_escaped(title), svg, html_escaped(caption), svg.empty() ? " open" : "", html_table(table, title));
}

std::string title_of(const Comparison& comparison, const Setting& setting) {
  std::string title = fmt::format("{}, recipe {}", setting.task, setting.recipe);
  const auto same = std::count_if(comparison.settings.begin(), comparison.settings.end(), [&](const Setting& other) {
    return other.task == setting.task && other.recipe == setting.recipe;
  });
  if (same == 1) return title;
  constexpr std::string_view kRecipe = "recipe.";
  std::vector<std::string> fields;
  for (const std::string& field : setting.differs) {
    if (field.starts_with(kRecipe)) fields.push_back(field.substr(kRecipe.size()));
  }
  if (fields.empty() || fields.size() > 2) return fmt::format("{} (setting {})", title, setting.id);
  return fmt::format("{}, {}", title, fmt::join(fields, ", "));
}

std::string shortened(const std::string& text, size_t longest) {
  if (text.size() <= longest) return text;
  size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "…";
}

std::string maps_html(ReportContext& context, const Setting& setting) {
  std::string html;
  for (const Cell& cell : setting.cells) {
    const std::vector<fs::path> maps = maps_of(cell);
    if (maps.size() > kMapsOfCell) {
      context.note(fmt::format("{}: {} attention maps, the first {} are shown", maps.front().parent_path().string(),
                               maps.size(), kMapsOfCell));
    }
    for (size_t i = 0; i < std::min(maps.size(), kMapsOfCell); ++i) {
      html += map_html(context, maps[i], fmt::format("{} ({})", cell.attention, maps[i].filename().string()));
    }
  }
  if (html.empty()) return "";
  return "<h3>Attention maps</h3>\n<p class=\"quiet\">Queries downward, keys to the right, best checkpoint of one run "
         "each. Two signs: blue, white, red; one sign: white to dark blue.</p>\n<div class=\"figures maps\">\n" +
         html + "</div>\n";
}

std::string provenance_html(const Comparison& comparison) {
  Table table{{"run folder", "task",      "setting",    "attention",       "seed",         "status",  "steps",
               "best step",  "commit",    "compiler",   "machine",         "instructions", "backend", "threads",
               "ranks",      "precision", "train data", "validation data", "test data",    "started", "finished"},
              {}};
  for (const Setting& setting : comparison.settings) {
    for (const Cell& cell : setting.cells) {
      for (const RecordFile* run : cell.runs) table.rows.push_back(provenance_row(setting, cell, *run));
      for (const RecordFile* run : cell.uncounted) table.rows.push_back(provenance_row(setting, cell, *run));
    }
  }
  return "<section id=\"provenance\" class=\"wide\">\n<h2>Provenance</h2>\n<p class=\"quiet\">Hashes are XXH64 of the "
         "examples as the "
         "model got them. \"changed\": tracked files differed from that commit.</p>\n" +
         html_table(table, "Every run of this report") + "</section>\n";
}

}  // namespace lra
