// The transformer classifier of the Long Range Arena: encoder blocks, pooling, head (tests/reference/lra_model.py).
// Written over ops on one ragged sequence at a time: no padding is computed, and examples run side by side on cores.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "lib/attention/attention.h"
#include "lib/model/config.h"
#include "lib/model/example.h"
#include "lib/model/observer.h"
#include "lib/model/parameters.h"
#include "lib/tensor/arena.h"

namespace lra {

struct DropoutSource {
  std::array<uint32_t, 2> key{};  // random_key(seed, RandomStream::kDropout, step)
  uint32_t example = 0;           // place in the global batch
};

struct ExampleResult {
  double loss = 0.0;
  int predicted = 0;  // the first of the largest logits
  std::vector<float> logits;
};

// Names and shapes of the tensors of such a model, without making it.
ParameterLayout parameter_layout(const ModelConfig& config);

class Classifier {
 public:
  // precision: of the encoder's products. UsageError where this processor has no bfloat16 products.
  explicit Classifier(const ModelConfig& config, Precision precision = Precision::kFloat32);
  ~Classifier();
  Classifier(Classifier&&) noexcept;

  const ModelConfig& config() const { return config_; }
  Precision precision() const { return precision_; }
  const ParameterLayout& layout() const { return layout_; }
  std::span<float> parameters() { return parameters_; }
  std::span<const float> parameters() const { return parameters_; }
  const AttentionKernel& kernel(int layer) const;

  // Start values of the configuration's `init`, a function of the seed alone.
  void initialise(uint64_t seed);

  // Evaluation: no dropout, nothing saved. fork: threads to spare for this example, or null; the result is the same.
  ExampleResult evaluate(const Example& example, Arena& arena, const Fork* fork = nullptr,
                         AttentionObserver* observer = nullptr) const;
  // Evaluation, and the gradients of its loss added to `gradients`: the slopes of the model as it is, without dropout.
  ExampleResult differentiate(const Example& example, std::span<float> gradients, Arena& arena,
                              AttentionObserver* observer = nullptr) const;
  // Training: loss of this example, and gradients of weight * loss added to `gradients` (layout().size() floats).
  ExampleResult train(const Example& example, float weight, const DropoutSource& dropout, std::span<float> gradients,
                      Arena& arena, const Fork* fork = nullptr) const;

  // Products executed for one example, 2 a multiply-add; dense: as exact dense attention would need.
  double flops(const Example& example, bool training, bool dense) const;

 private:
  struct Plan;  // offsets and kernels
  ModelConfig config_;
  Precision precision_;
  ParameterLayout layout_;
  std::vector<float> parameters_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace lra
