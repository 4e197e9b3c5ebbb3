// Attention families by name, with their options and facts; what `--attention list` prints.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/attention/attention.h"
#include "lib/attention/attention_ref.h"
#include "lib/attention/output_map.h"

namespace lra {

// What is known of a family: `--attention list`, the table of docs/attention.md and the tests follow from this.
struct AttentionFamily {
  std::string name;
  std::vector<AttentionOption> options = {};  // without causal, see below
  std::string idea = "";                      // one line
  std::string source;                         // paper
  std::string kind;                           // elementwise | row-wise | feature map | low rank
  std::string cost =
      "";  // per score forward, in additions or multiplications f and exponentials E; softmax takes 4f + 1E
  std::string linear = "no";  // form in time linear in N: no | exact | own kernel (P itself is another) | approximate
  std::string ours = "";      // what is our definition where the source says nothing or another thing
  bool causal = false;        // has the option causal=1
  bool jacobian = true;       // dP/dS of a row has a closed form (WeightRow::jacobian_square)
  // Whether S is a multiple of QKᵀ and the derivative of P by Q goes through S alone and whole.
  std::function<bool(const AttentionSpec&)> plain_scores = [](const AttentionSpec&) { return true; };
  // Whether a convolution of V is added to P V.
  std::function<bool(const AttentionSpec&)> convolves = [](const AttentionSpec&) { return false; };
  // Whether places of tokens index tensors of the padded length: none may lie behind it.
  bool indexes_places = false;
  // Refuses values that do not fit (UsageError naming option and right form).
  std::function<void(const AttentionSpec&)> validate = [](const AttentionSpec&) {};
  std::function<std::unique_ptr<AttentionKernel>(const AttentionSpec&, const AttentionShape&)> make = nullptr;
  // What happens to whole outputs after +xsa, before the output projection; null for most.
  std::function<std::unique_ptr<OutputMap>(const AttentionSpec&, const AttentionShape&)> finish = nullptr;
  ref::Reference reference = nullptr;                                                           // of make, in double
  std::function<void(const ref::AttentionProblem&, ref::Row& out)> finish_reference = nullptr;  // in place
  std::vector<std::string> examples = {};  // specs that the tests take, all forms among them
  bool slow_reference = false;             // not for long rows
  // Of their queries and keys, N(0, 1) times this: estimates of larger exponentials have denominators near 0, where no
  // two computations agree.
  float example_scale = 1.0f;
};

const std::vector<AttentionFamily>& attention_families();

// UsageError on an unknown name, key or value.
AttentionSpec parse_attention(const std::string& text);
const AttentionFamily& attention_family(const AttentionSpec& spec);
std::unique_ptr<AttentionKernel> make_attention(const AttentionSpec& spec, const AttentionShape& shape);
// The reference of the spec, +xsa included.
ref::Reference attention_reference(const AttentionSpec& spec);
// The table of all families for a terminal, and as Markdown.
std::string attention_list();
std::string attention_table();

}  // namespace lra
