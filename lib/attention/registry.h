// Attention families by name, with their options and facts; what `--attention list` prints.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/attention/attention.h"

namespace lra {

struct AttentionFamily {
  std::string name;
  std::vector<AttentionOption> options;
  std::string idea;    // one line
  std::string source;  // paper
  std::string kind;    // elementwise | row-wise | feature map | low rank
  // Refuses values that do not fit (UsageError naming option and right form).
  std::function<void(const AttentionSpec&)> validate;
  std::function<std::unique_ptr<AttentionKernel>(const AttentionSpec&, const AttentionShape&)> make;
};

const std::vector<AttentionFamily>& attention_families();

// UsageError on an unknown name, key or value.
AttentionSpec parse_attention(const std::string& text);
std::unique_ptr<AttentionKernel> make_attention(const AttentionSpec& spec, const AttentionShape& shape);
// The table of all families for a terminal.
std::string attention_list();

}  // namespace lra
