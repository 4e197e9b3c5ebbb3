// The language of ListOps (Nangia and Bowman 2018, "ListOps: A Diagnostic Dataset for Latent Tree Learning"): nested
// operators over digits, `[MAX 4 [MIN 2 8 ] 0 ]`. The Long Range Arena release adds a parenthesis around every
// application; parentheses carry nothing and are dropped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lra::listops {

// Token ids as the model gets them; 0 is padding. The digit d is kFirstDigit + d.
inline constexpr uint8_t kFirstDigit = 1;
inline constexpr uint8_t kMax = 11;
inline constexpr uint8_t kMin = 12;
inline constexpr uint8_t kMed = 13;
inline constexpr uint8_t kSum = 14;
inline constexpr uint8_t kClose = 15;
inline constexpr int kClasses = 10;

constexpr bool is_digit(uint8_t id) { return id >= kFirstDigit && id < kFirstDigit + 10; }
constexpr bool is_operator(uint8_t id) { return id >= kMax && id <= kSum; }

// "0" … "9", "[MAX", "[MIN", "[MED", "[SM", "]".
std::string_view token_text(uint8_t id);

// Appends the ids of `text`. Tokens stand between blanks and parentheses. Returns false at the first unknown token,
// which `unknown` then holds (a view into `text`).
bool tokenize(std::string_view text, std::vector<uint8_t>& ids, std::string_view& unknown);

// Value of one operator over digits 0-9, at least one: largest, smallest, median (of an even number the mean of the
// middle two, truncated), sum modulo 10.
int apply_operator(uint8_t op, std::span<const uint8_t> values);

// Evaluates whole expressions; an object keeps its stacks from one call to the next.
class Evaluator {
 public:
  // The value 0-9, or -1 where the ids are not exactly one expression; problem() then says what is wrong.
  int evaluate(std::span<const uint8_t> ids);
  const char* problem() const { return problem_; }

 private:
  struct Open {
    uint8_t op;
    size_t first_value;  // where its arguments begin in values_
  };

  int fail(const char* problem) {
    problem_ = problem;
    return -1;
  }

  std::vector<Open> open_;
  std::vector<uint8_t> values_;
  const char* problem_ = "";
};

// The expression as the release spells it: `( ( ( [MAX 4 ) 2 ) ] )`. `ids` must be exactly one expression.
void append_release_text(std::span<const uint8_t> ids, std::string& text);

}  // namespace lra::listops
