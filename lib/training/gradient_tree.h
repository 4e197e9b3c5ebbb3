// The sum of a batch's gradients in a fixed tree, whatever the order in which the examples are done: [0, B) is halved
// at (lo + hi) / 2 down to single examples, so the tree is a function of B alone; for a power of two of equal shares of
// the batch the subtrees are those of the shares. Internal to this room.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/training/gradient_buffer.h"
#include "lib/training/pool.h"

namespace lra {

class GradientTree {
 public:
  using Gradients = Pool<GradientBuffer>::Loan;

  explicit GradientTree(int64_t leaves);

  // Calls leaf(i) for every i of `order` (a permutation of [0, leaves)), started in that order on the threads of the
  // arena. Two sums are joined as soon as both are there, the right one added to the left one.
  Gradients sum(std::span<const int64_t> order, const std::function<Gradients(int64_t)>& leaf);

 private:
  struct Node {
    int32_t parent = -1;
    bool is_left = false;
    std::atomic<int> arrived = 0;  // children whose sum is there
    std::optional<Gradients> left, right;
  };

  int32_t build(int64_t lo, int64_t hi, int32_t parent, bool is_left);
  void arrive(int32_t node, Gradients gradients);

  std::vector<Node> nodes_;
  std::vector<int32_t> leaves_;  // node of each leaf
  int32_t used_ = 0;
  std::optional<Gradients> root_;
};

// The order in which to do examples of these costs: the longest first, so that no thread is left with a long one at the
// end, within groups of neighbours small enough that at most about `buffers` sums wait for their other half.
std::vector<int64_t> longest_first(std::span<const double> costs, int64_t buffers);

}  // namespace lra
