// Attention specs: name[:key=value,…][+xsa]. parse_attention fills in every default and refuses what the family
// does not know; canonical() writes the keys that differ from their default, in the order of the family's list.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/util/json.h"

namespace lra {

// One option of a family. choices empty: see kind.
struct AttentionOption {
  enum class Kind { kInteger, kReal, kFlag, kChoice, kText };
  std::string key;
  Kind kind;
  std::string default_value;
  std::vector<std::string> choices;  // kChoice
  std::string help;
};

struct AttentionSpec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;  // every option with its value, in the family's order
  std::vector<AttentionOption> known;                        // the family's list
  bool xsa = false;                                          // the modifier +xsa (exclude_self.h)

  const std::string& get(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double real(const std::string& key) const;
  // Whether the option is there and on.
  bool flag(const std::string& key) const;
  std::string canonical() const;
  std::string slug() const;   // of the canonical spec, for file names: "polynomial-power-3-scale-16"
  Json options_json() const;  // values typed: integers and reals as numbers, flags as booleans
};

}  // namespace lra
