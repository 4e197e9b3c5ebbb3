// The model's configuration: one list of fields serves writing and reading JSON; rules of single fields and between
// fields stand in validate().
#include "lib/model/config.h"

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "lib/attention/registry.h"
#include "lib/ops/dropout.h"
#include "lib/util/check.h"

namespace lra {
namespace {

constexpr int kLargestSize = 1 << 24;  // sizes beyond are typing errors; products of two stay far inside int64
constexpr int64_t kLargestPositions = int64_t{1} << 28;                         // numbers of the position table: 1 GiB
constexpr int kLargestHeads = 256 - static_cast<int>(DropoutSite::kAttention);  // heads share a byte with the sites
constexpr int kLargestLayers = 1000;

// Calls visit(name, member) for every field, in the order of the JSON.
template <class Config, class Visit>
void visit_fields(Config& c, Visit&& visit) {
  visit("task", c.task);
  visit("vocabulary", c.vocabulary);
  visit("classes", c.classes);
  visit("max_length", c.max_length);
  visit("padded_length", c.padded_length);
  visit("dim", c.dim);
  visit("qkv_dim", c.qkv_dim);
  visit("hidden", c.hidden);
  visit("heads", c.heads);
  visit("layers", c.layers);
  visit("dropout", c.dropout);
  visit("attention_dropout", c.attention_dropout);
  visit("pooling", c.pooling);
  visit("pair", c.pair);
  visit("attention", c.attention);
  visit("attention_bias", c.attention_bias);
  visit("positions", c.positions);
  visit("gelu", c.gelu);
  visit("norm_epsilon", c.norm_epsilon);
  visit("pair_head", c.pair_head);
  visit("init", c.init);
  visit("pixel_tokens", c.pixel_tokens);
}

struct Writer {
  Json& json;
  void operator()(const char* name, const std::string& value) const { json[name] = value; }
  void operator()(const char* name, int value) const { json[name] = value; }
  void operator()(const char* name, bool value) const { json[name] = value; }
  void operator()(const char* name, Gelu value) const { json[name] = value == Gelu::kExact ? "exact" : "tanh"; }
  // 0.1f is written 0.1, not 0.10000000149: the shortest text that gives the same float.
  void operator()(const char* name, float value) const { json[name] = std::stod(fmt::format("{}", value)); }
};

struct Reader {
  const Json& json;

  const Json& value(const char* name) const {
    const auto found = json.find(name);
    if (found == json.end()) throw InputError("model configuration: key \"{}\" is missing", name);
    return *found;
  }
  [[noreturn]] void wrong(const char* name, const char* right) const {
    throw InputError("model configuration: \"{}\" is {}, must be {}", name, dump_json(value(name)), right);
  }
  void operator()(const char* name, std::string& out) const {
    if (!value(name).is_string()) wrong(name, "a string");
    out = value(name).get<std::string>();
  }
  void operator()(const char* name, int& out) const {
    if (!value(name).is_number_integer()) wrong(name, "an integer");
    const double number = value(name).get<double>();
    if (std::abs(number) > kLargestSize) wrong(name, "an integer of at most 16777216");
    out = static_cast<int>(number);
  }
  void operator()(const char* name, bool& out) const {
    if (!value(name).is_boolean()) wrong(name, "true or false");
    out = value(name).get<bool>();
  }
  void operator()(const char* name, float& out) const {
    if (!value(name).is_number()) wrong(name, "a number");
    const double number = value(name).get<double>();
    if (std::abs(number) > std::numeric_limits<float>::max()) wrong(name, "a number in the range of float32");
    out = static_cast<float>(number);
  }
  void operator()(const char* name, Gelu& out) const {
    std::string word;
    (*this)(name, word);
    if (word != "exact" && word != "tanh") wrong(name, "\"exact\" or \"tanh\"");
    out = word == "exact" ? Gelu::kExact : Gelu::kTanh;
  }
};

void require_size(const char* field, int value, int least, int most = kLargestSize) {
  if (value < least || value > most) throw UsageError("{} is {}, must be from {} to {}", field, value, least, most);
}

void require_word(const char* field, const std::string& value, std::initializer_list<std::string_view> words) {
  std::string choices;
  for (const std::string_view word : words) {
    if (value == word) return;
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", word);
  }
  throw UsageError("{} is \"{}\", must be one of {}", field, value, choices);
}

void require_rate(const char* field, float rate) {
  // A rate is kept as a multiple of 2^-16 (lib/ops/dropout.h): what rounds to 1 would drop everything.
  if (!(rate >= 0.0f && rate < 1.0f && dropout_threshold(rate) < 65536)) {
    throw UsageError("{} is {}, must be at least 0 and below 1", field, rate);
  }
}

}  // namespace

void ModelConfig::validate() const {
  require_size("vocabulary", vocabulary, 2);
  require_size("classes", classes, 2);
  require_size("max_length", max_length, 1);
  require_size("padded_length", padded_length, 1);
  require_size("dim", dim, 1);
  require_size("qkv_dim", qkv_dim, 1);
  require_size("hidden", hidden, pair && pair_head == "two" ? 2 : 1);
  require_size("heads", heads, 1, kLargestHeads);
  require_size("layers", layers, 1, kLargestLayers);
  require_rate("dropout", dropout);
  require_rate("attention_dropout", attention_dropout);
  require_word("pooling", pooling, {"mean-padded", "mean", "cls", "cls-vector"});
  require_word("positions", positions, {"learned", "sinusoidal"});
  require_word("pair_head", pair_head, {"four", "two"});
  require_word("init", init, {"nystromformer", "lra"});
  if (qkv_dim % heads != 0) {
    throw UsageError("heads is {}, must divide {} {}", heads, qkv_dim == dim ? "dim" : "qkv_dim", qkv_dim);
  }
  const int needed = max_length + (pooling == "cls" ? 1 : 0);
  if (padded_length < needed) {
    throw UsageError("padded_length is {}, must be at least {}: max_length{}", padded_length, needed,
                     pooling == "cls" ? " and one for the CLS token" : "");
  }
  if (int64_t{padded_length} * dim > kLargestPositions) {
    throw UsageError("padded_length is {}, must be at most {} with dim {}", padded_length, kLargestPositions / dim,
                     dim);
  }
  if (positions == "sinusoidal" && dim % 2 != 0)
    throw UsageError("dim is {}, must be even for sinusoidal positions", dim);
  if (!(norm_epsilon > 0.0f && std::isfinite(norm_epsilon))) {
    throw UsageError("norm_epsilon is {}, must be above 0", norm_epsilon);
  }
  const AttentionSpec spec = parse_attention(attention);
  if (pooling == "cls-vector" && attention_family(spec).indexes_places && padded_length <= max_length) {
    throw UsageError(
        "padded_length is {}, must be at least {} with attention {}: max_length and one for the vector of "
        "pooling cls-vector",
        padded_length, max_length + 1, spec.name);
  }
}

Json ModelConfig::to_json() const {
  Json json = Json::object();
  visit_fields(*this, Writer{json});
  return json;
}

ModelConfig ModelConfig::from_json(const Json& json) {
  if (!json.is_object()) throw InputError("model configuration: must be a JSON object");
  ModelConfig config;
  Json known = config.to_json();
  for (const auto& [key, value] : json.items()) {
    if (!known.contains(key)) throw InputError("model configuration: unknown key \"{}\"", key);
  }
  visit_fields(config, Reader{json});
  try {
    config.validate();
  } catch (const UsageError& error) {
    throw InputError("model configuration: {}", error.what());
  }
  return config;
}

}  // namespace lra
