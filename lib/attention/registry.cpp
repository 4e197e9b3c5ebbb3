#include "lib/attention/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lib/attention/exclude_self.h"
#include "lib/attention/families.h"
#include "lib/util/check.h"

namespace lra {
namespace {

const AttentionFamily& find_family(const std::string& name) {
  std::vector<std::string> names;
  for (const AttentionFamily& family : attention_families()) {
    if (family.name == name) return family;
    names.push_back(family.name);
  }
  throw UsageError("unknown attention '{}'; known: {}", name, fmt::join(names, ", "));
}

std::string describe(const AttentionOption& option) {
  return option.key + "=" +
         (option.choices.empty() ? option.default_value : fmt::format("{}", fmt::join(option.choices, "|")));
}

// The shortest text of a number, without the + of 1e+20: in a spec it begins a modifier.
std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  std::erase(text, '+');
  return text;
}

// The value as canonical() writes it; UsageError where it is not of the option's kind.
std::string normalise(const std::string& family, const AttentionOption& option, const std::string& value) {
  const auto refuse = [&](const std::string& form) {
    throw UsageError("attention {}: {}={} must be {}", family, option.key, value, form);
  };
  char* end = nullptr;
  switch (option.kind) {
    case AttentionOption::Kind::kInteger: {
      errno = 0;
      const long long number = std::strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0' || errno != 0) refuse("a whole number");
      return fmt::format("{}", number);
    }
    case AttentionOption::Kind::kReal: {
      const double number = std::strtod(value.c_str(), &end);
      if (value.empty() || *end != '\0' || !std::isfinite(number)) refuse("a number");
      return number_text(number);
    }
    case AttentionOption::Kind::kFlag:
      if (value != "0" && value != "1") refuse("0 or 1");
      return value;
    case AttentionOption::Kind::kChoice:
      if (std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end()) {
        refuse(fmt::format("one of {}", fmt::join(option.choices, ", ")));
      }
      return value;
    case AttentionOption::Kind::kText: {
      // A number inside a text option has one spelling too: 16.0 is 16.
      const double number = std::strtod(value.c_str(), &end);
      const bool is_number = !value.empty() && *end == '\0' && std::isfinite(number);
      return is_number ? number_text(number) : value;
    }
  }
  return value;
}

}  // namespace

const std::vector<AttentionFamily>& attention_families() {
  static const std::vector<AttentionFamily> families = [] {
    std::vector<AttentionFamily> all;
    for (const auto& list : {
             softmax_families(),    polynomial_families(),    sigmoid_families(),       relu_n_families(),
             ssmax_families(),      softmax_sink_families(),  sigsoftmax_families(),    softpick_families(),
             gd_softmax_families(), adaptive_temp_families(), self_adjusted_families(), periodic_families(),
             entmax_families(),     prox_max_families(),      mos_families(),           fox_families(),
             nap_families(),        inline_families(),        linear_elu_families(),    favor_families(),
             rfa_families(),        rmfa_families(),          hrf_families(),           lln_families(),
             lln_diag_families(),   cosformer_families(),     nystrom_families(),       linformer_families(),
         }) {
      for (AttentionFamily family : list) {
        if (family.causal) {
          family.options.push_back({"causal",
                                    AttentionOption::Kind::kFlag,
                                    "0",
                                    {},
                                    "causal=1 gives a query the keys up to its own place only"});
        }
        all.push_back(std::move(family));
      }
    }
    return all;
  }();
  return families;
}

AttentionSpec parse_attention(const std::string& text) {
  const size_t plus = text.find('+');
  if (plus != std::string::npos && text.substr(plus) != "+xsa") {
    throw UsageError("attention '{}': '{}' is no modifier; there is +xsa alone, once, at the end", text,
                     text.substr(plus));
  }
  const std::string body = text.substr(0, plus);
  const size_t colon = body.find(':');
  AttentionSpec spec;
  spec.name = body.substr(0, colon);
  spec.xsa = plus != std::string::npos;
  const AttentionFamily& family = find_family(spec.name);
  spec.known = family.options;
  for (const AttentionOption& option : family.options) spec.options.emplace_back(option.key, option.default_value);

  std::string rest = colon == std::string::npos ? "" : body.substr(colon + 1);
  if (colon != std::string::npos && rest.empty()) {
    throw UsageError("attention '{}': nothing after ':'; write {}:key=value", text, spec.name);
  }
  std::vector<std::string> seen;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string item = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const auto option = std::find_if(family.options.begin(), family.options.end(),
                                     [&](const AttentionOption& o) { return o.key == key; });
    if (option == family.options.end() || equals == std::string::npos) {
      std::vector<std::string> known;
      for (const AttentionOption& o : family.options) known.push_back(describe(o));
      throw UsageError("attention {} has no option '{}'; it has: {}", spec.name, item,
                       known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      throw UsageError("attention {}: option '{}' is given twice", spec.name, key);
    }
    seen.push_back(key);
    spec.options[option - family.options.begin()].second = normalise(spec.name, *option, item.substr(equals + 1));
  }
  family.validate(spec);
  return spec;
}

const AttentionFamily& attention_family(const AttentionSpec& spec) { return find_family(spec.name); }

std::unique_ptr<AttentionKernel> make_attention(const AttentionSpec& spec, const AttentionShape& shape) {
  const AttentionFamily& family = attention_family(spec);
  std::unique_ptr<AttentionKernel> kernel = family.make(spec, shape);
  if (spec.xsa) kernel = map_output(std::move(kernel), exclude_self(shape));
  if (family.finish) kernel = map_output(std::move(kernel), family.finish(spec, shape));
  return kernel;
}

ref::Reference attention_reference(const AttentionSpec& spec) {
  const AttentionFamily& family = attention_family(spec);
  return [&family, xsa = spec.xsa](const ref::AttentionProblem& problem) {
    ref::Row out = family.reference(problem);
    if (xsa) ref::exclude_self(problem, out);
    if (family.finish_reference) family.finish_reference(problem, out);
    return out;
  };
}

std::string attention_list() {
  std::string text = fmt::format("{:<20}{:<13}{:<13}{:<8}{}\n", "name", "kind", "linear form", "causal",
                                 "P, x = q·k / √D, and source");
  for (const AttentionFamily& family : attention_families()) {
    text += fmt::format("{:<20}{:<13}{:<13}{:<8}{} ({})\n", family.name, family.kind, family.linear,
                        family.causal ? "yes" : "no", family.idea, family.source);
  }
  text += fmt::format("{:<54}{}\n", "any of them +xsa",
                      "each output without its part along the token's own value (arXiv 2603.09078)");
  text +=
      "\nOptions, name:key=value,…; where causal says yes, causal=1 gives a query the keys up to its own place only\n";
  size_t width = 0;
  for (const AttentionFamily& family : attention_families()) {
    for (const AttentionOption& option : family.options) width = std::max(width, describe(option).size() + 2);
  }
  for (const AttentionFamily& family : attention_families()) {
    std::string name = family.name;
    for (const AttentionOption& option : family.options) {
      if (option.key == "causal") continue;
      text += fmt::format("{:<20}{:<{}}{}\n", name, describe(option), width, option.help);
      name.clear();
    }
  }
  return text;
}

std::string attention_table() {
  const auto cell = [](std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  };
  std::string text =
      "| name | P | kind | cost a score | linear form | causal | options | source | ours |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const AttentionFamily& family : attention_families()) {
    std::vector<std::string> options;
    for (const AttentionOption& option : family.options) {
      if (option.key != "causal") options.push_back("`" + cell(describe(option)) + "`");
    }
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |\n", family.name, cell(family.idea),
                        family.kind, cell(family.cost), family.linear, family.causal ? "yes" : "no",
                        fmt::join(options, ", "), family.source, cell(family.ours));
  }
  return text;
}

}  // namespace lra
