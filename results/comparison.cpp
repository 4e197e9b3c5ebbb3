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
constexpr int64_t kMostRows = int64_t{1} << 50;  // what a record claims beyond is no count

Json split_identity(const std::optional<SplitRecord>& split) { return split ? Json(split->hash) : Json(nullptr); }

// All that two runs must share to be repeats of each other, seed and attention aside.
Json identity_of(const Record& r) {
  Json recipe = r.recipe;
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

// In what the machines and builds of their first runs differ.
std::string machines_differ(const Cell& cell, const Cell& baseline) {
  const Json own = machine_of(cell.runs.front()->record.environment);
  const Json other = machine_of(baseline.runs.front()->record.environment);
  std::vector<std::string> fields;
  for (const auto& [key, value] : own.items()) {
    if (value != other.at(key)) fields.push_back(key);
  }
  return fmt::format("{}", fmt::join(fields, ", "));
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

double ms_per_sample(const Record& r) {
  return r.speed.samples_per_second > 0.0 ? 1e3 / r.speed.samples_per_second : kUndefined;
}

// Mean of the ratios over machines on which both have runs.
double relative_time(const Cell& cell, const Cell& baseline) {
  std::map<std::string, std::pair<std::vector<const RecordFile*>, std::vector<const RecordFile*>>> machines;
  for (const RecordFile* run : cell.runs) machines[dump_json(machine_of(run->record.environment))].first.push_back(run);
  for (const RecordFile* run : baseline.runs) {
    machines[dump_json(machine_of(run->record.environment))].second.push_back(run);
  }
  std::vector<double> ratios;
  for (const auto& [machine, runs] : machines) {
    const double ratio =
        summarise(finite(runs.first, ms_per_sample)).mean / summarise(finite(runs.second, ms_per_sample)).mean;
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return summarise(ratios).mean;
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

void fill_cell(Cell& cell, double chance) {
  cell.test = summarise(best_accuracies(cell.runs));
  cell.last = summarise(finite(cell.runs, [](const Record& r) { return r.last ? r.last->test_accuracy : kUndefined; }));
  cell.interval = cell.test.interval;
  if (cell.runs.size() == 1) {
    const CheckpointMetrics& best = *cell.runs.front()->record.best;
    const int64_t trials = std::clamp<int64_t>(best.test_examples.value_or(0), 0, kMostRows);
    cell.interval = wilson_interval(std::llround(best.test_accuracy * static_cast<double>(trials)), trials);
  }
  cell.chance_level = cell.interval.low <= chance;
  cell.ms_per_sample = summarise(finite(cell.runs, ms_per_sample)).mean;
  cell.flops_per_sample = summarise(finite(cell.runs, [](const Record& r) { return r.speed.flops_per_sample; })).mean;
  for (const RecordFile* run : cell.runs) {
    cell.peak_rss_bytes = std::max(cell.peak_rss_bytes, run->record.speed.peak_rss_bytes);
    cell.parameters = std::max(cell.parameters, run->record.model.parameters);
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
    if (norms.size() >= 2) setting.norms.push_back({key, spearman(norms, accuracies)});
  }
}

void fill_setting(Setting& setting, const std::string& baseline) {
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
  if (base == nullptr) return;
  for (Cell& cell : setting.cells) {
    if (cell.runs.empty()) continue;
    cell.relative_time = relative_time(cell, *base);
    if (std::isnan(cell.relative_time)) cell.time_withheld = machines_differ(cell, *base);
    if (&cell == base) continue;
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
    if (!r.data.train) {
      leave_out(file, "evaluates a checkpoint, is no training run");
      return;
    }
    Cell& cell = cell_of(r);
    const auto same = std::find_if(cell.runs.begin(), cell.runs.end(),
                                   [&](const RecordFile* other) { return other->record.seed == r.seed; });
    if (r.status != RunStatus::kCompleted || !has_test(r)) {
      const bool completed = r.status == RunStatus::kCompleted;
      cell.uncounted.push_back(&file);
      cell.without.push_back(seed_text(r) +
                             (completed ? " has no test accuracy" : ' ' + std::string(status_name(r.status))));
    } else if (same != cell.runs.end()) {
      // Runs are deterministic: the same seed again is no second sample.
      leave_out(file, fmt::format("repeats {} of {}", seed_text(r), (*same)->path.string()));
    } else {
      cell.runs.push_back(&file);
    }
  }

  std::vector<Setting> take() {
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
    if (r.data.test && setting.test_examples == 0) {
      const double even = r.task.classes > 0 ? 1.0 / static_cast<double>(r.task.classes) : 0.0;
      setting.chance = std::max(even, r.data.test->majority_share);
      setting.test_examples = r.best && r.best->test_examples ? *r.best->test_examples : r.data.test->examples;
    }
    const std::string attention = one_line(r.attention.spec);
    for (Cell& cell : setting.cells) {
      if (cell.attention == attention) return cell;
    }
    setting.cells.push_back({});
    setting.cells.back().attention = attention;
    return setting.cells.back();
  }

  std::map<std::pair<std::string, std::string>, Setting> settings_;  // by task and text of the identity
  std::vector<std::string>& left_out_;
};

}  // namespace

std::string seed_text(const Record& r) { return r.seed ? fmt::format("seed {}", *r.seed) : std::string("no seed"); }

Json machine_of(const EnvironmentRecord& e) {
  return {{"commit", e.commit},
          {"CPU", e.cpu},
          {"instructions", e.instruction_set},
          {"backend", e.backend},
          {"GPU", e.gpu.value_or("")},
          {"threads", e.threads},
          {"ranks", e.ranks},
          {"compiler", e.compiler},
          {"build", e.build},
          {"precision", e.precision}};
}

double last_norm(const Record& r, const char* key) {
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
  return summarise(values).mean;
}

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
