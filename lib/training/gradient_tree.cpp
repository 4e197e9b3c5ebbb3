#include "lib/training/gradient_tree.h"

#include <algorithm>
#include <numeric>

#include "lib/training/parallel.h"
#include "lib/util/check.h"
#include "lib/util/phases.h"

namespace lra {

GradientTree::GradientTree(int64_t leaves)
    : nodes_(static_cast<size_t>(2 * leaves - 1)), leaves_(static_cast<size_t>(leaves)) {
  build(0, leaves, -1, false);
}

int32_t GradientTree::build(int64_t lo, int64_t hi, int32_t parent, bool is_left) {
  const int32_t index = used_++;
  Node& node = nodes_[static_cast<size_t>(index)];
  node.parent = parent;
  node.is_left = is_left;
  if (hi - lo == 1) {
    leaves_[static_cast<size_t>(lo)] = index;
  } else {
    const int64_t middle = (lo + hi) / 2;
    build(lo, middle, index, true);
    build(middle, hi, index, false);
  }
  return index;
}

void GradientTree::arrive(int32_t node, Gradients gradients) {
  for (;;) {
    const Node& done = nodes_[static_cast<size_t>(node)];
    if (done.parent < 0) {
      root_.emplace(std::move(gradients));
      return;
    }
    Node& parent = nodes_[static_cast<size_t>(done.parent)];
    (done.is_left ? parent.left : parent.right).emplace(std::move(gradients));
    // Of two halves the later goes on with the sum.
    if (parent.arrived.fetch_add(1, std::memory_order_acq_rel) == 0) return;
    {
      const PhaseScope phase(Phase::kSum);
      (*parent.left)->add(**parent.right);
    }
    parent.right.reset();
    gradients = std::move(*parent.left);
    parent.left.reset();
    node = done.parent;
  }
}

GradientTree::Gradients GradientTree::sum(std::span<const int64_t> order,
                                          const std::function<Gradients(int64_t)>& leaf) {
  check(order.size() == leaves_.size(), "{} examples for a tree of {}", order.size(), leaves_.size());
  for (Node& node : nodes_) {  // an exception may have left some
    node.arrived.store(0, std::memory_order_relaxed);
    node.left.reset();
    node.right.reset();
  }
  parallel_in_order(std::ssize(order), [&](int64_t i) {
    const int64_t place = order[static_cast<size_t>(i)];
    arrive(leaves_[static_cast<size_t>(place)], leaf(place));
  });
  Gradients sum = std::move(*root_);
  root_.reset();
  return sum;
}

std::vector<int64_t> longest_first(std::span<const double> costs, int64_t buffers) {
  std::vector<int64_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  const int64_t group = std::max<int64_t>(1, buffers), count = std::ssize(order);
  for (int64_t begin = 0; begin < count; begin += group) {
    std::stable_sort(order.begin() + begin, order.begin() + std::min(begin + group, count), [&](int64_t a, int64_t b) {
      return costs[static_cast<size_t>(a)] > costs[static_cast<size_t>(b)];
    });
  }
  return order;
}

}  // namespace lra
