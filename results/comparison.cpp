#include "results/comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "lib/util/check.h"
#include "lib/util/files.h"
#include "lib/util/program.h"
#include "results/predictions.h"

namespace lra {

namespace {

constexpr const char* kVerdictNames[] = {"untested", "within noise", "better", "worse"};
constexpr const char* kNorms[] = {"frobenius_mean", "jacobian", "score_gradient"};
constexpr double kSignificance = 1.0 - kConfidence;
constexpr double kParametersAlike = 0.10;
constexpr double kExact = 9007199254740992.0;    // 2^53: below it a double holds every whole number
constexpr int64_t kMostRows = int64_t{1} << 50;  // what a record claims beyond is no count

Json split_identity(const std::optional<SplitRecord>& split) { return split ? Json(split->hash) : Json(nullptr); }

// One text for one meaning: keys in order, whole numbers without a point.
Json normalised(const Json& json) {
  if (json.is_object()) {
    std::map<std::string, Json> sorted;
    for (const auto& [key, value] : json.items()) sorted.emplace(key, normalised(value));
    Json result = Json::object();
    for (auto& [key, value] : sorted) result[key] = std::move(value);
    return result;
  }
  if (json.is_array()) {
    Json result = Json::array();
    for (const Json& value : json) result.push_back(normalised(value));
    return result;
  }
  if (!json.is_number_float()) return json;
  const auto value = json.get<double>();
  return std::abs(value) < kExact && value == std::trunc(value) ? Json(static_cast<int64_t>(value)) : json;
}

// All that two runs must share to be repeats of each other, seed and attention aside.
Json identity_of(const Record& r) {
  Json recipe = normalised(r.recipe);
  recipe.erase("name");  // a name is no setting: its fields are
  return {{"recipe", recipe},
          {"data",
           {{"train", split_identity(r.data.train)},
            {"validation", split_identity(r.data.validation)},
            {"test", split_identity(r.data.test)}}},
          {"protocol",
           {{"validation", r.protocol.validation}, {"selection", r.protocol.selection}, {"order", r.protocol.order}}},
          {"precision", r.environment.precision}};
}

std::string recipe_name(const Record& r) {
  const auto name = r.recipe.find("name");
  return name != r.recipe.end() && name->is_string() ? name->get<std::string>() : "unnamed";
}

bool has_test(const Record& r) { return r.best && r.best->test_accuracy >= 0.0 && r.best->test_accuracy <= 1.0; }

// Finite values of the runs.
template <class Get>
std::vector<double> finite(const std::vector<const RecordFile*>& runs, Get&& get) {
  std::vector<double> values;
  for (const RecordFile* run : runs) {
    const double value = get(run->record);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

std::vector<double> best_accuracies(const std::vector<const RecordFile*>& runs) {
  return finite(runs, [](const Record& r) { return r.best->test_accuracy; });
}

Versus against(const Cell& cell, const Cell& baseline) {
  Versus versus;
  std::vector<double> a, b;  // of shared seeds
  for (const RecordFile* run : cell.runs) {
    for (const RecordFile* other : baseline.runs) {
      if (!run->record.seed || run->record.seed != other->record.seed) continue;
      a.push_back(run->record.best->test_accuracy);
      b.push_back(other->record.best->test_accuracy);
    }
  }
  const std::vector<double> all_a = best_accuracies(cell.runs), all_b = best_accuracies(baseline.runs);
  if (a.size() >= 2) {
    versus.test = "paired t";
    versus.difference = paired_t_test(a, b);
  } else {
    versus.test = "Welch t";
    versus.difference = welch_t_test(all_a, all_b);
  }
  if (std::isnan(versus.difference.p)) {
    versus.test.clear();
    versus.reason = all_a.size() < 2 || all_b.size() < 2 ? "one seed" : "no spread";
  }
  return versus;
}

// What a run got right of its test rows; no rows where the record does not say how many there were.
struct Rows {
  int64_t right = 0, all = 0;
};
Rows rows_of(const Record& r) {
  const int64_t all = std::clamp<int64_t>(r.best->test_examples.value_or(0), 0, kMostRows);
  return {std::llround(r.best->test_accuracy * static_cast<double>(all)), all};
}

// Seeds alone cannot tell: two of them give an interval that holds anything, and equal ones one of no width. So each
// run is judged by its own test rows, or by its value where they are unknown, and the cell by all rows together too.
void judge_chance(Cell& cell, double chance) {
  if (cell.runs.empty() || std::isnan(chance)) return;
  Rows pooled;
  bool all_known = true;
  for (const RecordFile* run : cell.runs) {
    const Rows rows = rows_of(run->record);
    const double low = rows.all > 0 ? wilson_interval(rows.right, rows.all).low : run->record.best->test_accuracy;
    if (!(low > chance)) cell.at_chance.push_back(seed_text(run->record));
    all_known = all_known && rows.all > 0 && pooled.all + rows.all <= kMostRows;
    if (all_known) pooled = {pooled.right + rows.right, pooled.all + rows.all};
  }
  cell.chance_level = cell.test.mean <= chance || cell.at_chance.size() == cell.runs.size() ||
                      (all_known && wilson_interval(pooled.right, pooled.all).low <= chance);
}

// Share of the commonest class of the rows that a run was tested on, which may be the first of the split only; nothing
// where its table of predictions does not say.
std::optional<double> tested_share(const Record& r) {
  if (!r.best || !r.best->test_examples) return std::nullopt;
  int64_t most = 0, all = 0;
  for (const auto& row : r.best->test_confusion) {
    int64_t rows = 0;
    for (const int64_t count : row) {
      if (count < 0 || count > kMostRows - all) return std::nullopt;
      rows += count;
      all += count;
    }
    most = std::max(most, rows);
  }
  if (all == 0 || all != *r.best->test_examples) return std::nullopt;
  return static_cast<double>(most) / static_cast<double>(all);
}

// Rows and chance, as the first run that was tested has them.
void describe_test(Setting& setting) {
  std::vector<const RecordFile*> files;
  for (const Cell& cell : setting.cells) files.insert(files.end(), cell.runs.begin(), cell.runs.end());
  for (const Cell& cell : setting.cells) files.insert(files.end(), cell.uncounted.begin(), cell.uncounted.end());
  for (const RecordFile* file : files) {
    const Record& r = file->record;
    const std::optional<double> tested = tested_share(r);
    if (!r.data.test || (!tested && setting.test_examples > 0)) continue;
    const double even = r.task.classes > 0 ? 1.0 / static_cast<double>(r.task.classes) : 0.0;
    setting.chance = std::max(even, tested.value_or(r.data.test->majority_share));
    setting.test_examples = r.best && r.best->test_examples ? *r.best->test_examples : r.data.test->examples;
    if (tested) return;
  }
}

void fill_cell(Cell& cell, double chance) {
  cell.test = summarise(best_accuracies(cell.runs));
  cell.last = summarise(finite(cell.runs, [](const Record& r) { return r.last ? r.last->test_accuracy : kUndefined; }));
  cell.interval = cell.test.interval;
  if (cell.runs.size() == 1) {
    const Rows rows = rows_of(cell.runs.front()->record);
    cell.interval = wilson_interval(rows.right, rows.all);
  }
  judge_chance(cell, chance);
  cell.flops_per_sample = summarise(finite(cell.runs, [](const Record& r) { return r.speed.flops_per_sample; })).mean;
  cell.norm_per_sqrt_n =
      summarise(finite(cell.runs, [](const Record& r) { return last_norm(r, "frobenius_per_sqrt_n"); })).mean;
  for (const RecordFile* run : cell.runs) {
    cell.peak_rss_bytes = std::max(cell.peak_rss_bytes, run->record.speed.peak_rss_bytes);
    cell.parameters = std::max(cell.parameters, run->record.model.parameters);
    for (const double score : last_norms(run->record, "max_score")) cell.max_score = std::fmax(cell.max_score, score);
  }
}

void correlate_norms(Setting& setting) {
  for (const char* key : kNorms) {
    std::vector<double> norms, accuracies;
    for (const Cell& cell : setting.cells) {
      for (const RecordFile* run : cell.runs) {
        const double norm = last_norm(run->record, key);
        if (!std::isfinite(norm)) continue;
        norms.push_back(norm);
        accuracies.push_back(run->record.best->test_accuracy);
      }
    }
    if (norms.size() >= 3) setting.norms.push_back({key, spearman(norms, accuracies)});
  }
}

void fill_setting(Setting& setting, const std::string& baseline) {
  describe_test(setting);
  for (Cell& cell : setting.cells) fill_cell(cell, setting.chance);
  std::stable_sort(setting.cells.begin(), setting.cells.end(), [&](const Cell& a, const Cell& b) {
    const auto rank = [&](const Cell& cell) {
      return std::make_tuple(cell.attention != baseline, cell.runs.empty(), cell.runs.empty() ? 0.0 : -cell.test.mean);
    };
    return rank(a) < rank(b);
  });
  correlate_norms(setting);
  Cell* base = nullptr;
  for (Cell& cell : setting.cells) {
    if (cell.attention == baseline && !cell.runs.empty()) base = &cell;
  }
  fill_times(setting, base);
  if (base == nullptr) return;
  for (Cell& cell : setting.cells) {
    if (cell.runs.empty() || &cell == base) continue;
    const auto own = static_cast<double>(cell.parameters), other = static_cast<double>(base->parameters);
    cell.parameters_differ = std::abs(own - other) > kParametersAlike * other;
    cell.versus = against(cell, *base);
  }
}

// Holm over all comparisons of a task, and what follows from it.
void judge(std::vector<Setting>& settings) {
  std::map<std::string, std::vector<Versus*>> tasks;
  for (Setting& setting : settings) {
    for (Cell& cell : setting.cells) {
      if (cell.versus) tasks[setting.task].push_back(&*cell.versus);
    }
  }
  for (auto& [task, comparisons] : tasks) {
    std::vector<double> p;
    for (const Versus* versus : comparisons) p.push_back(versus->difference.p);
    const std::vector<double> corrected = holm(p);
    for (size_t i = 0; i < corrected.size(); ++i) {
      Versus& versus = *comparisons[i];
      versus.p_holm = corrected[i];
      if (std::isnan(corrected[i])) continue;
      versus.verdict = corrected[i] >= kSignificance        ? Verdict::kWithinNoise
                       : versus.difference.difference > 0.0 ? Verdict::kBetter
                                                            : Verdict::kWorse;
    }
  }
}

// "/recipe/steps" -> "recipe.steps".
std::string dotted(const std::string& pointer) {
  std::string text = pointer.substr(std::min<size_t>(1, pointer.size()));
  std::replace(text.begin(), text.end(), '/', '.');
  return text;
}

// Names, in every setting of a task, the fields in which these settings differ.
void name_differences(std::vector<Setting>& settings) {
  std::map<std::string, std::vector<std::pair<Setting*, Json>>> tasks;
  for (Setting& setting : settings) tasks[setting.task].emplace_back(&setting, setting.identity.flatten());
  for (auto& [task, members] : tasks) {
    std::set<std::string> keys;
    for (const auto& [setting, flat] : members) {
      for (const auto& item : flat.items()) keys.insert(item.key());
    }
    for (const std::string& key : keys) {
      const auto value = [&](const Json& flat) { return flat.contains(key) ? dump_json(flat.at(key)) : "absent"; };
      const std::string first = value(members.front().second);
      if (std::all_of(members.begin(), members.end(), [&](const auto& m) { return value(m.second) == first; }))
        continue;
      for (auto& [setting, flat] : members) {
        setting->differs.push_back(one_line(fmt::format("{} {}", dotted(key), value(flat))));
      }
    }
  }
}

// Puts a record into its cell, or says why it has none.
class Grouping {
 public:
  explicit Grouping(std::vector<std::string>& left_out) : left_out_(left_out) {}

  void add(const RecordFile& file) {
    const Record& r = file.record;
    if (is_evaluation(r)) {
      leave_out(file, "evaluates a checkpoint, is no training run");
    } else if (r.data.train) {
      add_to(cell_of(r), file);
    } else if (r.status == RunStatus::kCompleted) {
      leave_out(file, "completed, but names no training data");
    } else {
      without_data_.push_back(&file);
    }
  }

  std::vector<Setting> take() {
    for (const RecordFile* file : without_data_) add_to(cell_without_data(file->record), *file);
    std::vector<Setting> result;
    for (auto& [key, setting] : settings_) {
      for (Cell& cell : setting.cells) {
        std::stable_sort(cell.runs.begin(), cell.runs.end(),
                         [](const RecordFile* a, const RecordFile* b) { return a->record.seed < b->record.seed; });
      }
      result.push_back(std::move(setting));
    }
    const auto order = [](const Setting& s) {
      const auto* known = std::find(std::begin(kTaskNames), std::end(kTaskNames), s.task);
      const Json length = s.identity.at("recipe").value("max_length", Json());
      return std::make_tuple(known - std::begin(kTaskNames), std::cref(s.task), std::cref(s.recipe),
                             length.is_number() ? length.get<double>() : 0.0, std::cref(s.id));
    };
    std::sort(result.begin(), result.end(), [&](const Setting& a, const Setting& b) { return order(a) < order(b); });
    return result;
  }

 private:
  void add_to(Cell& cell, const RecordFile& file) {
    const Record& r = file.record;
    const auto same = std::find_if(cell.runs.begin(), cell.runs.end(),
                                   [&](const RecordFile* other) { return other->record.seed == r.seed; });
    if (r.status != RunStatus::kCompleted || !has_test(r)) {
      const bool completed = r.status == RunStatus::kCompleted;
      cell.uncounted.push_back(&file);
      cell.without.push_back(seed_text(r) +
                             (completed ? " has no test accuracy" : ' ' + std::string(status_name(r.status))));
    } else if (same != cell.runs.end()) {
      // Runs are deterministic: the same seed again is no second sample.
      const double kept = (*same)->record.best->test_accuracy, other = r.best->test_accuracy;
      leave_out(file, fmt::format("repeats {} of {}{}", seed_text(r), (*same)->path.string(),
                                  kept == other ? ""
                                                : fmt::format(", which counts, with another test accuracy: {:.6g} % "
                                                              "against {:.6g} %",
                                                              100.0 * other, 100.0 * kept)));
    } else {
      cell.runs.push_back(&file);
    }
  }

  void leave_out(const RecordFile& file, const std::string& why) {
    left_out_.push_back(one_line(fmt::format("{}: {}", file.path.string(), why)));
  }

  Cell& cell_of(const Record& r) {
    Json identity = identity_of(r);
    const std::string key = dump_json(identity);
    Setting& setting = settings_[{r.task.name, key}];
    if (setting.id.empty()) {
      setting.id = hex64(hash_bytes(key)).substr(0, 8);
      setting.task = one_line(r.task.name);
      setting.recipe = one_line(recipe_name(r));
      setting.identity = std::move(identity);
    }
    return cell_in(setting, r);
  }

  // A run that failed before it read its data belongs to the one setting that differs in nothing else; where there are
  // several, or none, it stands alone.
  Cell& cell_without_data(const Record& r) {
    const Json own = identity_of(r);
    Setting* only = nullptr;
    for (auto& [key, setting] : settings_) {
      Json identity = setting.identity;
      identity["data"] = own.at("data");
      if (key.first != r.task.name || identity != own) continue;
      if (only != nullptr) return cell_of(r);
      only = &setting;
    }
    return only == nullptr ? cell_of(r) : cell_in(*only, r);
  }

  static Cell& cell_in(Setting& setting, const Record& r) {
    const std::string attention = one_line(r.attention.spec);
    for (Cell& cell : setting.cells) {
      if (cell.attention == attention) return cell;
    }
    setting.cells.push_back({});
    setting.cells.back().attention = attention;
    return setting.cells.back();
  }

  std::map<std::pair<std::string, std::string>, Setting> settings_;  // by task and text of the identity
  std::vector<const RecordFile*> without_data_;
  std::vector<std::string>& left_out_;
};

}  // namespace

std::string seed_text(const Record& r) { return r.seed ? fmt::format("seed {}", *r.seed) : std::string("no seed"); }

std::vector<double> last_norms(const Record& r, const char* key) {
  int64_t step = -1;
  std::vector<double> values;
  for (const Json& line : r.norms) {
    if (!line.is_object() || !line.contains(key) || !line.at(key).is_number()) continue;
    const auto at = line.find("step");
    if (at == line.end() || !at->is_number_integer()) continue;
    if (at->get<int64_t>() > step) values.clear();
    step = std::max(step, at->get<int64_t>());
    if (at->get<int64_t>() == step) values.push_back(line.at(key).get<double>());
  }
  return values;
}

double last_norm(const Record& r, const char* key) { return summarise(last_norms(r, key)).mean; }

const char* verdict_name(Verdict verdict) { return kVerdictNames[static_cast<int>(verdict)]; }

Comparison compare(const RecordFiles& files, const std::string& baseline, const std::string& task) {
  Comparison comparison{.baseline = baseline, .settings = {}, .left_out = files.left_out};
  Grouping grouping(comparison.left_out);
  for (const RecordFile& file : files.records) {
    if (task.empty() || file.record.task.name == task) grouping.add(file);
  }
  comparison.settings = grouping.take();
  for (Setting& setting : comparison.settings) fill_setting(setting, baseline);
  judge(comparison.settings);
  test_rows(comparison.settings, baseline);
  name_differences(comparison.settings);
  return comparison;
}

}  // namespace lra
