// One training step after another: takes the next batch of the endless training stream, sums the gradients of its
// examples in a fixed tree, updates. Same seed, same bits, for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/device/batch_model.h"
#include "lib/model/classifier.h"
#include "lib/training/schedule.h"

namespace lra {

struct TrainerSettings {
  ScheduleSettings schedule;
  int batch_size = 32;
  double weight_decay = 0.0, beta2 = 0.999, epsilon = 1e-6;
  double clip_norm = 0.0;  // 0: off
  uint64_t seed = 0;
  bool shuffled = true;  // else file order
};

struct StepResult {
  int64_t step = 0;   // number of updates done, this one included
  double loss = 0.0;  // mean over the batch, before the update
  double accuracy = 0.0;
  double learning_rate = 0.0;
  double gradient_norm = 0.0;  // global L2, before clipping
  int64_t tokens = 0;
  double flops = 0.0;
  bool finite = true;  // false: loss or gradient is not finite, and nothing was updated
};

class Ranks;

// UsageError when `ranks` processes can't share a batch so that the sum of its gradients is that of one: want a power
// of two that divides it.
void check_ranks(int64_t batch_size, int ranks);

class Trainer {
 public:
  // Runs on the TBB arena of the caller (see threads.h). model, data, ranks and device must outlive it. ranks: which
  // share every batch in equal parts (check_ranks), null: this process has all. device: where this
  // process's part of a batch is computed; null: here.
  Trainer(Classifier& model, const ExampleSource& data, const TrainerSettings& settings, const Ranks* ranks = nullptr,
          BatchModel* device = nullptr);
  ~Trainer();

  StepResult step();  // at rank 0
  // The other ranks: their share of the step after `steps_done`, with the model's parameters.
  void contribute(int64_t steps_done);
  int64_t steps_done() const { return steps_done_; }
  // Brings model.parameters() and the moments up to date where a device has them.
  void fetch();

  // For checkpoints: moments, twins of model.parameters().
  std::span<float> first_moment() { return m_; }
  std::span<float> second_moment() { return v_; }
  void restore(int64_t steps_done) { steps_done_ = steps_done, on_device_ = false; }

 private:
  struct Workspace;
  StepResult step_on_device();

  Classifier& model_;
  const ExampleSource& data_;
  TrainerSettings settings_;
  const Ranks* ranks_;
  BatchModel* device_;
  bool on_device_ = false;  // the device has parameters and moments
  int64_t steps_done_ = 0;
  std::vector<float> m_, v_;
  std::unique_ptr<Workspace> workspace_;
};

// Rows of batch number `batch` (from 0) of the endless stream: rows [b*B, (b+1)*B) of file order repeated, or of a
// fresh permutation f(seed, epoch) a pass. No short batch, no dropped row.
class BatchOrder {
 public:
  BatchOrder(int64_t examples, int batch_size, uint64_t seed, bool shuffled);
  std::vector<int64_t> rows(int64_t batch);

 private:
  int64_t examples_;
  int batch_size_;
  uint64_t seed_;
  bool shuffled_;
  int64_t epoch_ = -1;
  std::vector<uint32_t> order_;
};

}  // namespace lra
