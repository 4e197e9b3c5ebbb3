// The fixtures with what is known of each, and how numbers are compared with theirs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/training/threads.h"
#include "lib/training/trainer.h"
#include "tests/golden/fixture.h"
#include "tests/support/examples.h"

namespace lra {

struct Case {
  const char* name;
  // The gradient of the key bias is 0 but for rounding where a shift of a row of scores changes nothing; Adam turns
  // what is left into updates of any size up to the rate.
  bool shift_invariant = false;
  const char* form = nullptr;  // of the kernel, where the fixture's spec leaves the choice
  // Smallest tolerance of the losses. fusedmax: in the fourth step two segments of a row meet; the reference itself, in
  // double from start values moved by half a float32 rounding, ends 7.1e-6 away in 7 of 12 draws.
  double losses = 0.0;
  // Smallest relative tolerance of norms. rmfa: denominators near 0; half a float32 rounding of the start values moves
  // the reference in double by 2 to 6e-6.
  double norms = 0.0;
};

inline std::string title(const Case& c) { return c.form == nullptr ? c.name : std::string(c.name) + "-form-" + c.form; }

inline void PrintTo(const Case& c, std::ostream* out) { *out << title(c); }

inline constexpr Case kCases[] = {
    {"softmax", true},
    {"pair-softmax", true},
    {"mean-softmax", true},
    {"cls-softmax", true},
    {"lra-softmax", true},
    {"lra-mean-softmax", true},
    {"lra-cosine-softmax", true},
    {"lra-pair-softmax", true},
    {"polynomial-power-1-scale-sqrt", false, "quadratic"},
    {"polynomial-power-1-scale-sqrt", false, "linear"},
    {"polynomial-power-2-scale-n", false, "quadratic"},
    {"polynomial-power-2-scale-n", false, "linear"},
    {"polynomial-power-3-scale-16"},
    {"polynomial-power-3-scale-sqrt-length-max"},
    {"polynomial-power-4-scale-moment"},
    {"polynomial-power-6-scale-moment-gain-1"},
    {"pair-polynomial-power-3-scale-16"},
    {"adaptive-temp-train-1-gradient-full"},
    {"adaptive-temp-train-1"},
    {"adaptive-temp"},
    {"cos-max"},
    {"entmax-alpha-1.3"},
    {"entmax-learnable-1"},
    {"entmax15"},
    {"fox-bi"},
    {"fox"},
    {"fusedmax-lambda-0.5", false, nullptr, 1e-5},
    {"gd-softmax"},
    {"inline-features-exp", false, "quadratic"},
    {"inline-features-exp", false, "linear"},
    {"inline-conv"},
    {"inline-conv-width-6"},
    {"inline", false, "quadratic"},
    {"inline", false, "linear"},
    {"mos"},
    {"nap", false, "quadratic"},
    {"nap", false, "linear"},
    {"norm-cos-max"},
    {"norm-sin-max-const"},
    {"norm-sin-max"},
    {"norm-sin-softmax"},
    {"norm-sin2-max-shift"},
    {"norm-sin2-max"},
    {"norm-siren-max"},
    {"oscarmax-beta-0.05"},
    {"polynomial-power-3-scale-16-plus-xsa"},
    {"rela-gate-1"},
    {"rela"},
    {"relu-n-power-2-a-0.5"},
    {"relu-n"},
    {"sa-softmax-form-minus-min"},
    {"sa-softmax-norm-form-free"},
    {"sa-softmax-norm"},
    {"sa-softmax"},
    {"sigmoid-learnable-1"},
    {"sigmoid-n"},
    {"sigmoid-sqrt-n"},
    {"sigmoid"},
    {"sigsoftmax"},
    {"sin-max-const-omega-10"},
    {"sin-max-const"},
    {"sin-max"},
    {"sin-softmax"},
    {"sin2-max-shift"},
    {"sin2-max"},
    {"siren-max"},
    {"softmax-plus-xsa"},
    {"softmax-sink"},
    {"softmax1"},
    {"softpick"},
    {"sparsemax"},
    {"ssmax-bias-1"},
    {"ssmax"},
    {"linear-elu"},
    {"linear-elu-lra"},
    {"linear-elu-lra-length-max"},
    {"favor-features-16"},
    {"rfa-features-16"},
    {"rmfa-features-16", false, nullptr, 0.0, 1.5e-5},
    {"hrf-features-16"},
    {"lln"},
    {"lln-diag"},
    {"lln-diag-mix-ratio"},
    {"lln-diag-mix-scale"},
    {"cosformer"},
    {"nystrom-landmarks-8"},
    {"nystrom-landmarks-4-conv-5"},
    {"linformer-rank-8"},
    {"linformer-rank-8-share-none"},
};

// Keeps the worst ratio of an error to its tolerance over a fixture.
class Comparison {
 public:
  void expect(const std::string& what, std::span<const float> got, std::span<const float> want, double tolerance) {
    ASSERT_EQ(got.size(), want.size()) << what;
    double error = 0.0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
      error = difference <= error ? error : difference;  // NaN is kept
    }
    EXPECT_LE(error, tolerance) << what;
    if (!(error / tolerance <= worst_)) worst_ = error / tolerance, where_ = what;
  }
  double worst() const { return worst_; }
  const std::string& where() const { return where_; }

 private:
  double worst_ = 0.0;
  std::string where_;
};

inline std::span<float> part(std::span<float> flat, const ParameterInfo& info) {
  return flat.subspan(static_cast<size_t>(info.offset), static_cast<size_t>(info.size));
}

inline void load_start(Fixture& fixture, Classifier& model) {
  const std::vector<std::string> names = fixture.names_below("init.");
  std::set<std::string> ours;
  for (const ParameterInfo& info : model.layout().all()) ours.insert(info.name);
  ASSERT_EQ(ours, std::set<std::string>(names.begin(), names.end()));
  for (const ParameterInfo& info : model.layout().all()) {
    ASSERT_EQ(info.shape, fixture.shape("init." + info.name)) << info.name;
    std::ranges::copy(fixture.floats("init." + info.name), part(model.parameters(), info).begin());
  }
}

// What a model makes of the fixture's batch before the first update.
struct FirstStep {
  std::vector<ExampleResult> trained, evaluated;
  std::vector<float> gradients;  // of the mean loss
};

inline void compare_first_step(Fixture& fixture, const ParameterLayout& layout, FirstStep& first,
                               Comparison& comparison) {
  std::vector<float> logits, evaluated;
  double loss = 0.0;
  for (size_t i = 0; i < first.trained.size(); ++i) {
    const ExampleResult &trained = first.trained[i], &result = first.evaluated[i];
    loss += trained.loss / static_cast<double>(first.trained.size());
    logits.insert(logits.end(), trained.logits.begin(), trained.logits.end());
    evaluated.insert(evaluated.end(), result.logits.begin(), result.logits.end());
  }
  comparison.expect("logits", logits, fixture.floats("logits"), fixture.tolerance("logits"));
  comparison.expect("logits of evaluation", evaluated,
                    fixture.floats(fixture.has("logits.eval") ? "logits.eval" : "logits"), fixture.tolerance("logits"));
  comparison.expect("loss", std::vector{static_cast<float>(loss)}, fixture.floats("loss"), fixture.tolerance("loss"));
  const double tolerance = fixture.tolerance("grad") * fixture.gradient_scale();
  for (const ParameterInfo& info : layout.all()) {
    if (!info.trained) continue;
    comparison.expect("grad." + info.name, part(first.gradients, info), fixture.floats("grad." + info.name), tolerance);
  }
}

// Ten steps of the trainer, on the device where there is one.
inline void compare_training(Fixture& fixture, const Case& c, Classifier& model, const std::vector<Example>& examples,
                             Comparison& comparison, BatchModel* device = nullptr) {
  const VectorSource source(examples);
  std::vector<float> losses;
  Threads threads(2);
  threads.run([&] {
    Trainer trainer(model, source, fixture.trainer_settings(), nullptr, device);
    for (int64_t step = 0; step < fixture.trainer_settings().schedule.steps; ++step) {
      losses.push_back(static_cast<float>(trainer.step().loss));
    }
    trainer.fetch();
  });
  comparison.expect("losses", losses, fixture.floats("losses"), std::max(c.losses, fixture.tolerance("losses")));
  for (const ParameterInfo& info : model.layout().all()) {
    const bool kept = fixture.facts().at("final") == "all" || info.name.find(".kernel.") != std::string::npos;
    if (!kept || !info.trained) continue;
    const bool free = c.shift_invariant && info.name.ends_with(".key.bias");
    comparison.expect("final." + info.name, part(model.parameters(), info), fixture.floats("final." + info.name),
                      free ? 2e-5 : fixture.tolerance("final"));
  }
}

// The configuration of a case, with its form.
inline ModelConfig config_of(const Fixture& fixture, const Case& c) {
  ModelConfig config = fixture.config();
  if (c.form != nullptr) {
    config.attention += (config.attention.find(':') == std::string::npos ? ":form=" : ",form=") + std::string(c.form);
  }
  return config;
}

inline std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = title(info.param);
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

}  // namespace lra
