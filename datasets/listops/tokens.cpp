#include "datasets/listops/tokens.h"

#include <algorithm>
#include <array>

#include "lib/util/check.h"

namespace lra::listops {
namespace {

constexpr std::array<std::string_view, 16> kTexts = {"<pad>", "0", "1", "2",    "3",    "4",    "5",   "6",
                                                     "7",     "8", "9", "[MAX", "[MIN", "[MED", "[SM", "]"};

constexpr bool separates(char c) { return c == ' ' || c == '(' || c == ')'; }

// 0 where the token is unknown.
uint8_t token_id(std::string_view token) {
  if (token.size() == 1) {
    if (token[0] >= '0' && token[0] <= '9') return static_cast<uint8_t>(kFirstDigit + (token[0] - '0'));
    return token[0] == ']' ? kClose : 0;
  }
  for (uint8_t id = kMax; id <= kSum; ++id) {
    if (token == kTexts[id]) return id;
  }
  return 0;
}

}  // namespace

std::string_view token_text(uint8_t id) {
  check(id < kTexts.size(), "no ListOps token has the id {}", id);
  return kTexts[id];
}

bool tokenize(std::string_view text, std::vector<uint8_t>& ids, std::string_view& unknown) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    while (at != end && separates(*at)) ++at;
    if (at == end) return true;
    const char* const start = at;
    while (at != end && !separates(*at)) ++at;
    const std::string_view token(start, static_cast<size_t>(at - start));
    const uint8_t id = token_id(token);
    if (id == 0) {
      unknown = token;
      return false;
    }
    ids.push_back(id);
  }
}

int apply_operator(uint8_t op, std::span<const uint8_t> values) {
  check(!values.empty(), "a ListOps operator without arguments");
  switch (op) {
    case kMax: return *std::max_element(values.begin(), values.end());
    case kMin: return *std::min_element(values.begin(), values.end());
    case kSum: {
      size_t sum = 0;
      for (const uint8_t value : values) sum += value;
      return static_cast<int>(sum % 10);
    }
    case kMed: {
      std::array<size_t, 10> counts{};
      for (const uint8_t value : values) ++counts[value];
      const auto ranked = [&](size_t rank) {
        int value = 0;
        for (size_t below = counts[0]; below <= rank; below += counts[++value]) {
        }
        return value;
      };
      return (ranked((values.size() - 1) / 2) + ranked(values.size() / 2)) / 2;
    }
    default: check(false, "{} is no ListOps operator", op); return 0;
  }
}

int Evaluator::evaluate(std::span<const uint8_t> ids) {
  open_.clear();
  values_.clear();
  for (const uint8_t id : ids) {
    if (open_.empty() && !values_.empty()) return fail("more follows after the end of the expression");
    if (is_operator(id)) {
      open_.push_back({id, values_.size()});
    } else if (id == kClose) {
      if (open_.empty()) return fail("a ] without its operator");
      const Open top = open_.back();
      if (top.first_value == values_.size()) return fail("an operator without arguments");
      const int value = apply_operator(top.op, std::span(values_).subspan(top.first_value));
      open_.pop_back();
      values_.resize(top.first_value);
      values_.push_back(static_cast<uint8_t>(value));
    } else {
      check(is_digit(id), "{} is no id of a ListOps expression", id);
      values_.push_back(static_cast<uint8_t>(id - kFirstDigit));
    }
  }
  if (!open_.empty()) return fail("an operator without its ]");
  if (values_.empty()) return fail("no expression");
  return values_.front();
}

void append_release_text(std::span<const uint8_t> ids, std::string& text) {
  // The release writes the left-branching tree ((([MAX a) b) ]): as many opening parentheses stand before an operator
  // as it has arguments and one for its bracket, and one closes behind each of them.
  std::vector<uint32_t> arguments(ids.size());
  std::vector<size_t> open;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kClose) {
      check(!open.empty(), "a ListOps expression closes too often");
      open.pop_back();
    } else if (!open.empty()) {
      ++arguments[open.back()];
    }
    if (is_operator(ids[i])) open.push_back(i);
  }
  size_t depth = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += ' ';
    if (is_operator(ids[i])) {
      for (uint32_t k = 0; k <= arguments[i]; ++k) text += "( ";
      ++depth;
    }
    text += token_text(ids[i]);
    if (ids[i] == kClose) {
      text += " )";  // of the bracket itself
      --depth;
    }
    if (!is_operator(ids[i]) && depth > 0) text += " )";  // of the argument that ends here
  }
}

}  // namespace lra::listops
