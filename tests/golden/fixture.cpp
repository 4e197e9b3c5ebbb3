// Reads a fixture and turns its configuration, recipe and padded rows into ours. The names of the reference
// (tests/reference/lra_model.py, make_fixtures.py) meet those of the library here and nowhere else.
#include "tests/golden/fixture.h"

#include <algorithm>
#include <stdexcept>

#include "lib/attention/registry.h"

namespace lra {

Fixture::Fixture(const std::string& name)
    : name_(name),
      file_(read_safetensors(std::string(LRA_SOURCE_DIR) + "/tests/golden/fixtures/" + name + ".safetensors")),
      facts_(Json::parse(file_.metadata.at("fixture"))) {}

ModelConfig Fixture::config() const {
  const Json& c = facts_.at("config");
  ModelConfig config;
  config.vocabulary = c.at("vocab_size");
  config.classes = c.at("num_classes");
  config.padded_length = c.at("max_len");
  config.dim = c.at("dim");
  config.qkv_dim = c.at("qkv_dim") == 0 ? c.at("dim") : c.at("qkv_dim");
  config.hidden = c.at("hidden");
  config.heads = c.at("heads");
  config.layers = c.at("layers");
  config.dropout = c.at("dropout");
  config.attention_dropout = c.at("attention_dropout");
  config.pooling = c.at("pooling");
  config.max_length = config.padded_length - (config.pooling == "cls" ? 1 : 0);
  config.pair = c.at("pair");
  config.attention = parse_attention(c.at("attention")).canonical();
  config.attention_bias = c.at("attention_bias");
  config.positions = c.at("positions");
  config.gelu = c.at("gelu") == "tanh" ? Gelu::kTanh : Gelu::kExact;
  config.norm_epsilon = c.at("norm_epsilon");
  config.pair_head = c.at("pair_head");
  config.init = c.at("init");
  return config;
}

TrainerSettings Fixture::trainer_settings() const {
  const Json& r = facts_.at("recipe");
  TrainerSettings settings;
  const std::string form = r.at("schedule");
  settings.schedule.form = form == "OneCycleLR linear" ? "one-cycle" : form;
  settings.schedule.learning_rate = r.at("peak");
  settings.schedule.steps = r.at("steps");
  settings.schedule.warmup = r.at("warmup");
  settings.batch_size = static_cast<int>(file_.tensors.at("labels").elements());
  settings.weight_decay = r.at("weight_decay");
  settings.beta2 = r.at("beta2");
  settings.epsilon = r.at("epsilon");
  settings.shuffled = false;
  return settings;
}

std::vector<Example> Fixture::examples() {
  const TensorData& labels = read("labels");
  const auto rows = [&](const std::string& tensor) {
    const TensorData& ids = read(tensor);
    const int64_t width = ids.shape.at(1);
    std::vector<Sequence> sequences;
    for (int64_t row = 0; row < ids.shape.at(0); ++row) {
      const auto first = ids.ints().begin() + row * width;
      sequences.push_back(make_sequence({first, first + width}));
    }
    return sequences;
  };
  std::vector<Example> examples(static_cast<size_t>(labels.elements()));
  const std::vector<Sequence> first = rows("ids");
  const std::vector<Sequence> second = facts_.at("config").at("pair") ? rows("ids2") : std::vector<Sequence>();
  for (size_t i = 0; i < examples.size(); ++i) {
    examples[i].first = first.at(i);
    if (!second.empty()) examples[i].second = second.at(i);
    examples[i].label = labels.ints()[i];
  }
  return examples;
}

const TensorData& Fixture::read(const std::string& tensor) {
  const auto found = file_.tensors.find(tensor);
  if (found == file_.tensors.end()) throw std::runtime_error(name_ + " has no tensor " + tensor);
  read_.insert(tensor);
  return found->second;
}

std::span<const float> Fixture::floats(const std::string& tensor) { return read(tensor).floats(); }

std::vector<std::string> Fixture::names_below(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file_.tensors) {
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

std::vector<std::string> Fixture::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file_.tensors) {
    if (!read_.contains(name)) names.push_back(name);
  }
  return names;
}

double Fixture::tolerance(const std::string& quantity) const {
  constexpr double kLeast = 1e-6;
  return std::max(4.0 * facts_.at("float32_error").at(quantity).get<double>(), kLeast);
}

}  // namespace lra
