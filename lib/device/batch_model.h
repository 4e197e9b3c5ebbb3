// The classifier (lib/model/classifier.h) on a device: whole batches, with parameters, gradients and moments in the
// device's memory. All that training and evaluation know of a device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/model/classifier.h"
#include "lib/ops/adamw.h"

namespace lra {

class BatchModel {
 public:
  virtual ~BatchModel() = default;
  virtual std::string device_name() const = 0;
  // Whether attention is linear in the number of tokens.
  virtual bool linear() const = 0;

  // State of training, in the order of the layout: parameters and both moments, which may be left out (empty) where
  // update is not called.
  virtual void load(std::span<const float> parameters, std::span<const float> m, std::span<const float> v) = 0;
  virtual void store(std::span<float> parameters, std::span<float> m, std::span<float> v) const = 0;

  // Losses of the examples with dropout, and the gradients of weight * their sum in place of those before. first: of
  // the examples' dropout.
  virtual std::vector<ExampleResult> train(std::span<const Example> examples, float weight,
                                           const DropoutSource& first) = 0;
  virtual std::vector<float> gradients() const = 0;
  virtual double gradient_norm() const = 0;  // global L2
  // Update number step (from 1) by gradient_scale times the gradients.
  virtual void update(const AdamWSettings& settings, int64_t step, float gradient_scale) = 0;

  // Without dropout, with parameters of their own: the state of training is left alone.
  virtual std::vector<ExampleResult> evaluate(std::span<const float> parameters, std::span<const Example> examples) = 0;
};

// precision: of the products, float32, tf32 or bfloat16. number: of the device, counted round those there are.
// UsageError where the attention has no kernel, InputError where there is no device or the program was built without
// one.
std::unique_ptr<BatchModel> make_batch_model(const ModelConfig& config, std::string_view precision, int number = 0);

}  // namespace lra
