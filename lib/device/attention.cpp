// Families by name.
#include "lib/device/attention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/attention/families.h"
#include "lib/attention/polynomial.h"
#include "lib/device/centred_linear.h"
#include "lib/device/families.h"
#include "lib/device/feature_map.h"
#include "lib/device/forget.h"
#include "lib/device/fused.h"
#include "lib/device/inline.h"
#include "lib/device/lln_diag.h"
#include "lib/device/low_rank.h"
#include "lib/device/mixture.h"
#include "lib/device/output_map.h"
#include "lib/device/panels.h"
#include "lib/util/check.h"

namespace lra::device {
namespace {

using Rows = std::function<std::unique_ptr<ScoreRows>(const AttentionSpec&, const AttentionShape&)>;
using Features = std::function<std::unique_ptr<FeatureMap>(const AttentionSpec&, const AttentionShape&)>;
using Make = std::function<std::unique_ptr<Attention>(const AttentionSpec&, const AttentionShape&)>;

LengthFactor polynomial_factor(const AttentionSpec& spec, const AttentionShape& shape) {
  const std::string& scale = spec.get("scale");
  LengthFactor factor;
  if (spec.get("length") == "max") factor.length = static_cast<float>(shape.padded_length);
  if (scale == "n") {
    factor.exponent = 1.0f;
  } else if (scale == "sqrt") {
    factor.exponent = 0.5f;
  } else if (scale == "moment") {
    factor.exponent = 0.5f;
    const int power = static_cast<int>(spec.integer("power"));
    factor.factor = static_cast<float>(1.0 / std::sqrt(polynomial_moment(power, shape.head_dim)));
  } else {
    factor.factor = static_cast<float>(1.0 / spec.real("scale"));
  }
  return factor;
}

std::unique_ptr<ScoreRows> polynomial(const AttentionSpec& spec, const AttentionShape& shape) {
  return polynomial_rows(static_cast<int>(spec.integer("power")), polynomial_factor(spec, shape), spec.flag("gain"));
}

// form=linear; the CPU's kernel has refused other powers.
std::unique_ptr<Attention> linear_form(const AttentionSpec& spec, const AttentionShape& shape) {
  const bool causal = spec.flag("causal");
  if (spec.name != "polynomial") {
    if (causal) {
      throw UsageError("attention {}: form=linear has no causal kernel on CUDA; want form=auto or form=quadratic",
                       spec.name);
    }
    return spec.name == "nap" ? nap_linear(shape) : inline_linear(shape);
  }
  const int power = static_cast<int>(spec.integer("power"));
  return make_feature_map(shape, power_features(shape, power, polynomial_factor(spec, shape), spec.flag("gain")),
                          causal);
}

Denominator length_denominator(const AttentionSpec& spec, const AttentionShape& shape) {
  const float length = spec.get("length") == "max" ? static_cast<float>(shape.padded_length) : 0.0f;
  return {.form = Denominator::Form::kLength, .length = {.exponent = 0.5f, .length = length}};
}

// Null where there is none.
std::unique_ptr<Attention> fused(const AttentionSpec& spec, const AttentionShape& shape, bool causal) {
  if (shape.head_dim > kWidestFusedHead) return nullptr;
  if (spec.name == "softmax") return fused_softmax(shape, causal);
  if (spec.name == "polynomial" && !spec.flag("gain")) {
    return fused_polynomial(shape, causal, static_cast<int>(spec.integer("power")), polynomial_factor(spec, shape));
  }
  if (spec.name == "sigmoid" && !spec.flag("learnable")) {
    return fused_sigmoid(shape, causal, SigmoidBias::kLength, {});
  }
  if (spec.name == "sigmoid-sqrt-n") return fused_sigmoid(shape, causal, SigmoidBias::kNone, {.exponent = 0.5f});
  if (spec.name == "sigmoid-n") return fused_sigmoid(shape, causal, SigmoidBias::kNone, {.exponent = 1.0f});
  if (spec.name == "relu-n") {
    return fused_relu(shape, causal, spec.integer("power") == 2, {.exponent = static_cast<float>(spec.real("a"))});
  }
  if (spec.name == "rela") return fused_relu(shape, causal, false, {});
  return nullptr;
}

struct Family {
  std::string name;
  Rows rows = {};          // of scores, or
  Features features = {};  // of queries and keys, or
  Make make = {};          // something of its own
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    const auto real = [](const AttentionSpec& spec, const char* key) { return static_cast<float>(spec.real(key)); };
    std::vector<Family> list = {
        {"softmax", [](auto&, auto&) { return softmax_rows(); }},
        {"polynomial", polynomial},
        {"sigmoid",
         [](const AttentionSpec& spec, auto&) {
           return sigmoid_rows(spec.flag("learnable") ? SigmoidBias::kLearnt : SigmoidBias::kLength, {});
         }},
        {"sigmoid-sqrt-n", [](auto&, auto&) { return sigmoid_rows(SigmoidBias::kNone, {.exponent = 0.5f}); }},
        {"sigmoid-n", [](auto&, auto&) { return sigmoid_rows(SigmoidBias::kNone, {.exponent = 1.0f}); }},
        {"relu-n", [real](const AttentionSpec& spec,
                          auto&) { return relu_rows(spec.integer("power") == 2, {.exponent = real(spec, "a")}); }},
        {"rela", [](auto&, auto&) { return relu_rows(false, {}); }},
        {"ssmax", [](const AttentionSpec& spec, auto&) { return ssmax_rows(spec.flag("bias")); }},
        {"softmax1", [](auto&, auto&) { return softmax_sink_rows(false); }},
        {"softmax-sink", [](auto&, auto&) { return softmax_sink_rows(true); }},
        {"sigsoftmax", [](auto&, auto&) { return sigsoftmax_rows(); }},
        {"softpick", [](auto&, auto&) { return softpick_rows(); }},
        {"gd-softmax", [real](const AttentionSpec& spec, auto&) { return gd_softmax_rows(real(spec, "beta")); }},
        {"adaptive-temp",
         [](const AttentionSpec& spec, auto&) {
           return adaptive_rows(spec.flag("train"), spec.get("gradient") == "full", spec.flag("clamp"));
         }},
        {"sa-softmax",
         [](const AttentionSpec& spec, auto&) {
           return self_adjusted_rows(spec.get("form") == "plain" ? AdjustedEnds::kPlain : AdjustedEnds::kMinusMin);
         }},
        {"sa-softmax-norm",
         [](const AttentionSpec& spec, auto&) {
           return self_adjusted_rows(spec.get("form") == "zero" ? AdjustedEnds::kZero : AdjustedEnds::kFree);
         }},
        {"sparsemax", [](auto&, auto&) { return entmax_rows(2.0f, false); }},
        {"entmax15", [](auto&, auto&) { return entmax_rows(1.5f, false); }},
        {"entmax",
         [real](const AttentionSpec& spec, auto&) { return entmax_rows(real(spec, "alpha"), spec.flag("learnable")); }},
        {"fusedmax", [real](const AttentionSpec& spec, auto&) { return fusedmax_rows(real(spec, "lambda")); }},
        {"oscarmax", [real](const AttentionSpec& spec, auto&) { return oscarmax_rows(real(spec, "beta")); }},
        {"mos",
         [](const AttentionSpec& spec, const AttentionShape& shape) {
           return mixture_rows(static_cast<int>(spec.integer("components")), shape);
         }},
        {"fox", [](auto&, const AttentionShape& shape) { return forget_rows(false, shape.heads); }},
        {"fox-bi", [](auto&, const AttentionShape& shape) { return forget_rows(true, shape.heads); }},
        {"nap", [](auto&, auto&) { return nap_rows(); }},
        {"inline", [](auto&, auto&) { return inline_rows(); }},
        {"inline-conv", [](auto&, auto&) { return inline_rows(); }},
        {.name = "linear-elu",
         .features =
             [](auto&, const AttentionShape& shape) {
               return elu_features(shape, {Denominator::Form::kPlus, 1e-6f});
             }},
        {.name = "linear-elu-lra",
         .features = [](const AttentionSpec& spec,
                        const AttentionShape& shape) { return elu_features(shape, length_denominator(spec, shape)); }},
        {.name = "cosformer", .features = [](auto&, const AttentionShape& shape) { return cosformer_features(shape); }},
        {.name = "lln", .features = [](auto&, const AttentionShape& shape) { return lln_features(shape); }},
        {.name = "lln-diag", .make = make_lln_diag},
        {.name = "favor", .features = favor_features},
        {.name = "rfa", .features = rfa_features},
        {.name = "hrf", .features = hrf_features},
        {.name = "rmfa", .features = rmfa_features},
        {.name = "linformer", .make = make_linformer},
        {.name = "nystrom", .make = make_nystrom},
    };
    const std::pair<const char*, Wave> waves[] = {
        {"sin-max", Wave::kSin},   {"sin-max-const", Wave::kSinConst},   {"cos-max", Wave::kCos},
        {"sin2-max", Wave::kSin2}, {"sin2-max-shift", Wave::kSin2Shift}, {"siren-max", Wave::kSiren}};
    for (const bool standardised : {false, true}) {
      const std::string prefix = standardised ? "norm-" : "";
      for (const auto& [name, wave] : waves) {
        list.push_back({prefix + name, [wave = wave, standardised, real](const AttentionSpec& spec, auto&) {
                          const float omega = wave == Wave::kSinConst ? real(spec, "omega") : 1.0f;
                          return periodic_rows({wave, omega}, false, standardised);
                        }});
      }
      list.push_back({prefix + "sin-softmax", [standardised](auto&, auto&) {
                        return periodic_rows({Wave::kSin, 1.0f}, true, standardised);
                      }});
    }
    return list;
  }();
  return all;
}

}  // namespace

std::unique_ptr<Attention> make_attention(const AttentionSpec& spec, const AttentionShape& shape, ProductMode mode) {
  const auto family = std::ranges::find(families(), spec.name, &Family::name);
  if (family == families().end()) {
    throw UsageError("attention {} has no kernel on CUDA", spec.name);
  }
  const bool linear =
      std::ranges::find(spec.options, std::pair<std::string, std::string>("form", "linear")) != spec.options.end();
  const float score_scale = spec.name == "nap" ? 1.0f : 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  const bool causal = spec.flag("causal") || spec.name == "fox";
  std::unique_ptr<Attention> attention;
  if (linear) {
    attention = linear_form(spec, shape);
  } else if (family->make) {
    attention = family->make(spec, shape);
  } else if (family->features) {
    attention = make_feature_map(shape, family->features(spec, shape), causal);
  } else if (mode == ProductMode::kBfloat16) {
    attention = fused(spec, shape, causal);
  }
  if (attention == nullptr) attention = make_panels(shape, family->rows(spec, shape), score_scale, causal, {});
  if (spec.name.starts_with("inline")) attention = map_inputs(std::move(attention), spec.get("features"));
  if (spec.name == "inline-conv") {
    attention = add_local_mix(std::move(attention), shape, static_cast<int>(spec.integer("width")), 0);
  }
  if (spec.xsa) attention = map_output(std::move(attention), exclude_self(shape), shape);
  if (spec.name == "rela") attention = map_output(std::move(attention), rms_gate(spec.flag("gate")), shape);
  if (spec.name == "nap") attention = map_output(std::move(attention), norm_gelu(), shape);
  return attention;
}

}  // namespace lra::device
