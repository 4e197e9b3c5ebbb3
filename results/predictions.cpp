#include "results/predictions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/program.h"

namespace lra {

namespace {

constexpr size_t kNamedAtMost = 6;

// Picks the whole numbers out of a line without building a document: there may be millions of lines.
struct Row final : nlohmann::json_sax<nlohmann::json> {
  std::optional<int64_t> index, label, predicted;

  bool key(std::string& name) override {
    target_ = name == "index" ? &index : name == "label" ? &label : name == "predicted" ? &predicted : nullptr;
    return true;
  }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return value <= INT32_MAX && put(static_cast<int64_t>(value)); }
  bool start_object(size_t) override { return depth_++ == 0; }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_float(double, const std::string&) override { return other(); }
  bool string(std::string&) override { return other(); }
  bool binary(binary_t&) override { return false; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool put(int64_t value) {
    if (target_ != nullptr) *target_ = value;
    return true;
  }
  bool other() const { return target_ == nullptr; }

  std::optional<int64_t>* target_ = nullptr;
  int depth_ = 0;
};

// Reads each file once, although the baseline's are compared with those of every cell.
class Reader {
 public:
  // Null, with a note of why, where there are no predictions.
  const Predictions* of(const RecordFile& run, const std::string& attention) {
    const auto [found, fresh] = read_.try_emplace(&run);
    if (!fresh) return found->second ? &*found->second : nullptr;
    const std::filesystem::path file = run.path.parent_path() / "predictions-test.jsonl";
    std::error_code unknown;
    if (!std::filesystem::exists(file, unknown)) {
      note("no predictions-test.jsonl", attention, run.record);
      return nullptr;
    }
    try {
      found->second = read_predictions(file);
    } catch (const std::exception& error) {
      note(error.what(), attention, run.record);
    }
    return found->second ? &*found->second : nullptr;
  }

  void note(const std::string& why, const std::string& attention, const Record& record) {
    notes_[why].push_back(attention + ' ' + seed_text(record));
  }

  std::vector<std::string> take_notes() {
    std::vector<std::string> lines;
    for (auto& [why, names] : notes_) {
      const size_t more = names.size() - std::min(names.size(), kNamedAtMost);
      names.resize(names.size() - more);
      lines.push_back(one_line(fmt::format("Not compared row by row, {}: {}{}", why, fmt::join(names, ", "),
                                           more > 0 ? fmt::format(" and {} more", more) : "")));
    }
    notes_.clear();
    return lines;
  }

 private:
  std::map<const RecordFile*, std::optional<Predictions>> read_;
  std::map<std::string, std::vector<std::string>> notes_;  // by reason
};

void test_cell(Cell& cell, const Cell& baseline, Reader& reader) {
  for (const RecordFile* run : cell.runs) {
    const auto other = std::find_if(baseline.runs.begin(), baseline.runs.end(), [&](const RecordFile* candidate) {
      return run->record.seed && candidate->record.seed == run->record.seed;
    });
    if (other == baseline.runs.end()) continue;
    const Predictions* a = reader.of(*run, cell.attention);
    const Predictions* b = reader.of(**other, baseline.attention);
    if (a == nullptr || b == nullptr) continue;
    if (a->rows_hash != b->rows_hash) {
      reader.note("rows are not those of the baseline", cell.attention, run->record);
      continue;
    }
    RowTest test{.seed = *run->record.seed, .rows = static_cast<int64_t>(a->right.size())};
    for (size_t i = 0; i < a->right.size(); ++i) {
      test.only_here += a->right[i] && !b->right[i];
      test.only_baseline += !a->right[i] && b->right[i];
    }
    test.p = mcnemar_p(test.only_here, test.only_baseline);
    cell.row_tests.push_back(test);
  }
}

}  // namespace

Predictions read_predictions(const std::filesystem::path& file) {
  require_regular(file);
  const std::string text = read_file(file);
  Predictions predictions;
  std::vector<int64_t> rows;
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    Row row;
    const bool whole = nlohmann::json::sax_parse(text.begin() + static_cast<int64_t>(begin),
                                                 text.begin() + static_cast<int64_t>(end), &row);
    if (!whole || !row.index || !row.label || !row.predicted) {
      throw InputError("{}:{}: want an object with the whole numbers index, label and predicted", file.string(), line);
    }
    predictions.right.push_back(*row.label == *row.predicted);
    rows.push_back(*row.index);
    rows.push_back(*row.label);
    begin = end + 1;
  }
  if (rows.empty()) throw InputError("{}: holds no row", file.string());
  predictions.rows_hash = hash_bytes({reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(int64_t)});
  return predictions;
}

void test_rows(std::vector<Setting>& settings, const std::string& baseline) {
  Reader reader;
  std::map<std::string, std::vector<RowTest*>> tasks;
  for (Setting& setting : settings) {
    const auto base = std::find_if(setting.cells.begin(), setting.cells.end(),
                                   [&](const Cell& cell) { return cell.attention == baseline; });
    if (base == setting.cells.end()) continue;
    for (Cell& cell : setting.cells) {
      if (&cell == &*base) continue;
      test_cell(cell, *base, reader);
      for (RowTest& test : cell.row_tests) tasks[setting.task].push_back(&test);
    }
    setting.row_notes = reader.take_notes();
  }
  for (const auto& [task, tests] : tasks) {
    std::vector<double> p;
    for (const RowTest* test : tests) p.push_back(test->p);
    const std::vector<double> corrected = holm(p);
    for (size_t i = 0; i < corrected.size(); ++i) tests[i]->p_holm = corrected[i];
  }
}

}  // namespace lra
