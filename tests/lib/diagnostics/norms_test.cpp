// Norms against plain ones of whole matrices in double, their bounds in a model that is trained, and what is undefined.
#include "lib/diagnostics/norms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/diagnostics/norm_sums.h"
#include "lib/diagnostics/row_statistics.h"
#include "lib/training/task_fork.h"
#include "lib/training/threads.h"
#include "lib/training/trainer.h"
#include "tests/lib/attention/attention_problem.h"
#include "tests/support/examples.h"
#include "tests/support/models.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

using Table = std::vector<std::vector<double>>;  // (rows, columns)

// P of a matrix of scores, and dS for a given dP, as in the papers.
double power_of(const std::string& attention) {
  const AttentionSpec spec = parse_attention(attention);
  return spec.name == "softmax" ? 0.0 : static_cast<double>(spec.integer("power"));
}

// power 0: softmax, else x^power / 16.
std::vector<double> weights_of(const std::vector<double>& x, double power) {
  std::vector<double> p(x.size());
  double sum = 0.0;
  for (size_t j = 0; j < x.size(); ++j) {
    p[j] = power == 0.0 ? std::exp(x[j]) : std::pow(x[j], power) / 16.0;
    sum += p[j];
  }
  if (power == 0.0) {
    for (double& value : p) value /= sum;
  }
  return p;
}

// (∂p_j / ∂x_k) of a row, whole.
Table jacobian_of(const std::vector<double>& x, double power) {
  const std::vector<double> p = weights_of(x, power);
  Table jacobian(x.size(), std::vector<double>(x.size()));
  for (size_t j = 0; j < x.size(); ++j) {
    for (size_t k = 0; k < x.size(); ++k) {
      jacobian[j][k] = power == 0.0 ? p[j] * ((j == k ? 1.0 : 0.0) - p[k])
                       : j == k     ? power * std::pow(x[j], power - 1.0) / 16.0
                                    : 0.0;
    }
  }
  return jacobian;
}

double norm_of(const Table& table) {
  double sum = 0.0;
  for (const auto& row : table) {
    for (const double value : row) sum += value * value;
  }
  return std::sqrt(sum);
}

// Scores of one head in double.
Table scores_of(const AttentionInput& in, int head, int64_t d) {
  Table scores;
  for (int64_t i = 0; i < in.q.rows; ++i) {
    std::vector<double>& row = scores.emplace_back();
    for (int64_t j = 0; j < in.k.rows; ++j) {
      double sum = 0.0;
      for (int64_t c = head * d; c < (head + 1) * d; ++c) sum += static_cast<double>(in.q.row(i)[c]) * in.k.row(j)[c];
      row.push_back(sum / std::sqrt(static_cast<double>(d)));
    }
  }
  return scores;
}

// What a matrix contributes, from all of it at once.
struct Plain {
  std::vector<double> frobenius, per_root, jacobian, entropy, negative;
  std::vector<bool> saturated;
  double max_score = 0.0;

  void add(const Table& scores, double power) {
    Table weights;
    double jacobian_square = 0.0;
    for (const auto& row : scores) {
      weights.push_back(weights_of(row, power));
      jacobian_square += std::pow(norm_of(jacobian_of(row, power)), 2);
      double sum = 0.0, largest = 0.0, bits = 0.0;
      for (const double p : weights.back()) sum += std::abs(p), largest = std::max(largest, std::abs(p));
      for (const double p : weights.back()) {
        if (p != 0.0) bits -= std::abs(p) / sum * std::log(std::abs(p) / sum);
        negative.push_back(p < 0.0 ? 1.0 : 0.0);
      }
      entropy.push_back(bits);
      saturated.push_back(largest > 0.99 * sum);
      for (const double x : row) max_score = std::max(max_score, std::abs(x));
    }
    frobenius.push_back(norm_of(weights));
    per_root.push_back(norm_of(weights) / std::sqrt(static_cast<double>(scores.size())));
    jacobian.push_back(std::sqrt(jacobian_square));
  }
};

template <class Values>
double mean(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Looks at the same inputs as the norms.
class PlainObserver final : public AttentionObserver {
 public:
  PlainObserver(std::map<std::pair<int, int>, Plain>& plain, double power) : plain_(plain), power_(power) {}
  void attention(const AttentionKernel& kernel, const AttentionInput& in, Arena&) override {
    for (int head = 0; head < kernel.shape().heads; ++head) {
      plain_[{in.layer, head}].add(scores_of(in, head, kernel.shape().head_dim), power_);
    }
  }

 private:
  std::map<std::pair<int, int>, Plain>& plain_;
  double power_;
};

ModelConfig config_with(const std::string& attention, bool pair = false) {
  ModelConfig config = small_config();
  config.attention = attention;
  config.pair = pair;
  return config;
}

// Start values give scores near 0; these reach some units.
void sharpen(Classifier& model) {
  model.initialise(7);
  for (const ParameterInfo& info : model.layout().all()) {
    if (info.name.find("attention.query") == std::string::npos && info.name.find("attention.key") == std::string::npos)
      continue;
    for (int64_t i = 0; i < info.size; ++i) model.parameters()[static_cast<size_t>(info.offset + i)] *= 4.0f;
  }
}

TEST(Norms, AreThoseOfWholeMatrices) {
  for (const char* attention : {"softmax", "polynomial", "polynomial:power=2", "polynomial:power=1,form=linear"}) {
    for (const bool pair : {false, true}) {
      const ModelConfig config = config_with(attention, pair);
      Classifier model(config);
      sharpen(model);
      const std::vector<Example> examples = random_examples(config, 9, 5);
      std::map<std::pair<int, int>, Plain> plain;
      PlainObserver observer(plain, power_of(attention));
      Arena arena;
      for (const Example& example : examples) model.evaluate(example, arena, nullptr, &observer);
      const std::vector<AttentionNorms> norms = measure_norms(model, examples);
      ASSERT_EQ(norms.size(), 4u);
      for (const AttentionNorms& n : norms) {
        SCOPED_TRACE(fmt::format("{} pair {} layer {} head {}", attention, pair, n.layer, n.head));
        const Plain& p = plain.at({n.layer, n.head});
        const double average = mean(p.frobenius);
        double spread = 0.0;
        for (const double norm : p.frobenius) spread += (norm - average) * (norm - average);
        EXPECT_EQ(n.matrices, std::ssize(p.frobenius));
        EXPECT_NEAR(n.frobenius_mean, average, 1e-4 * average);
        EXPECT_NEAR(n.frobenius_std, std::sqrt(spread / (static_cast<double>(p.frobenius.size()) - 1)), 1e-4 * average);
        EXPECT_NEAR(n.frobenius_per_sqrt_n, mean(p.per_root), 1e-4 * mean(p.per_root));
        EXPECT_NEAR(n.jacobian, mean(p.jacobian), 1e-4 * mean(p.jacobian));
        EXPECT_NEAR(n.max_score, p.max_score, 1e-5 * p.max_score);
        EXPECT_NEAR(n.entropy, mean(p.entropy), 1e-4 * mean(p.entropy));
        EXPECT_NEAR(n.saturated_share, mean(p.saturated), 1e-9);
        EXPECT_NEAR(n.negative_share, mean(p.negative), 1e-3);
        EXPECT_GT(n.score_gradient, 0.0);
      }
    }
  }
}

// Σ dS² of the heads against dS made of the whole matrix dP = dO Vᵀ, for every form.
TEST(Norms, ScoreGradientsAreThoseOfWholeMatrices) {
  for (const char* attention : {"softmax", "polynomial", "polynomial:power=2", "polynomial:power=2,form=linear",
                                "polynomial:power=1,form=linear,gain=1"}) {
    Problem problem(attention, 60, 2, 8, 0.0f);
    if (!problem.parameters.empty()) std::ranges::fill(problem.parameters[0], 1.0f);
    problem.training = false;
    std::vector<const float*> pointers;
    const AttentionInput in = problem.input(pointers);
    std::vector<float> out(problem.n * problem.width()), d_in(3 * out.size()), dx(out.size()),
        saved(problem.kernel->saved_floats(problem.n, 0.0f)), d_gain(2);
    const Matrix out_rows(out.data(), problem.n, problem.width()), d_rows(d_in.data(), problem.n, 3 * problem.width());
    std::vector<float*> d_pointers(problem.parameters.size(), d_gain.data());
    std::vector<double> squares(2, kUntouched);
    AttentionGradients gradients;
    gradients.d_out = ConstMatrix(problem.d_out.data(), problem.n, problem.width());
    gradients.dq = d_rows.col_block(0, problem.width());
    gradients.dk = d_rows.col_block(problem.width(), problem.width());
    gradients.dv = d_rows.col_block(2 * problem.width(), problem.width());
    gradients.dx = Matrix(dx.data(), problem.n, problem.width());
    gradients.d_parameters = d_pointers;
    gradients.score_gradient_squares = squares.data();
    Arena arena;
    problem.kernel->forward(in, out_rows, saved.data(), arena);
    problem.kernel->backward(in, out_rows, saved.data(), gradients, arena);
    for (int head = 0; head < 2; ++head) {
      const Table scores = scores_of(in, head, 8);
      double wanted = 0.0;
      for (int64_t i = 0; i < problem.n; ++i) {
        const Table jacobian = jacobian_of(scores[static_cast<size_t>(i)], power_of(attention));
        std::vector<double> d_weights;
        for (int64_t j = 0; j < problem.n; ++j) {
          double sum = 0.0;
          for (int64_t c = head * 8; c < head * 8 + 8; ++c) {
            sum += static_cast<double>(gradients.d_out.row(i)[c]) * in.v.row(j)[c];
          }
          d_weights.push_back(sum);
        }
        for (size_t k = 0; k < scores.size(); ++k) {
          double sum = 0.0;
          for (size_t j = 0; j < scores.size(); ++j) sum += jacobian[j][k] * d_weights[j];
          wanted += sum * sum;
        }
      }
      EXPECT_NEAR(squares[static_cast<size_t>(head)], wanted, 1e-4 * wanted) << attention;
    }
  }
}

// A trained model's softmax keeps within 1 <= ‖P‖ <= √N and ‖dP/dS‖ <= √N / 2.
TEST(Norms, OfSoftmaxKeepTheirBoundsThroughTraining) {
  const ModelConfig config = config_with("softmax");
  std::vector<Example> examples = random_examples(config, 32, 4);
  for (Example& example : examples) {  // one length, so that the bounds of means are those of matrices
    std::vector<int32_t> ids(36);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = 1 + static_cast<int32_t>((i * i + i * example.label) % 9);
    example.first = make_sequence(ids);
  }
  const VectorSource source(examples);
  Classifier model(config);
  model.initialise(1);
  TrainerSettings settings;
  settings.schedule = {"one-cycle", 3e-2, 60, 6};
  settings.batch_size = 8;
  double sharpest = 0.0;
  Threads(2).run([&] {
    Trainer trainer(model, source, settings);
    for (int step = 0; step < 60; ++step) {
      trainer.step();
      if (step % 15 != 14) continue;
      for (const AttentionNorms& n : measure_norms(model, examples)) {
        EXPECT_GE(n.frobenius_mean, 1.0 - 1e-6);
        EXPECT_LE(n.frobenius_per_sqrt_n, 1.0 + 1e-6);
        EXPECT_GT(n.jacobian, 0.0);
        EXPECT_LE(n.jacobian, std::sqrt(36.0) / 2 + 1e-6);
        EXPECT_LE(n.entropy, std::log(36.0) + 1e-6);
        EXPECT_EQ(n.negative_share, 0.0);
        sharpest = std::max(sharpest, n.frobenius_mean);
      }
    }
  });
  EXPECT_GT(sharpest, 1.01) << "training moved nothing: the bounds were not tried";
}

TEST(Norms, AreTheSameForAnyNumberOfThreads) {
  const ModelConfig config = config_with("polynomial", true);
  Classifier model(config);
  sharpen(model);
  const std::vector<Example> examples = random_examples(config, 11, 6);
  const auto text = [](const std::vector<AttentionNorms>& norms) {
    std::string lines;
    for (const AttentionNorms& n : norms) lines += dump_json(norms_to_json(n, 3)) + "\n";
    return lines;
  };
  const std::string alone = text(measure_norms(model, examples));
  for (const int threads : {1, 3}) {
    Threads(threads).run([&] {
      const TaskFork fork;
      EXPECT_EQ(text(measure_norms(model, examples, &fork)), alone);
    });
  }
}

TEST(Norms, WithoutAMatrixNothingIsDefined) {
  Classifier model(config_with("softmax"));
  model.initialise(1);
  for (const std::vector<Example>& examples : {std::vector<Example>{}, std::vector<Example>(3)}) {
    const std::vector<AttentionNorms> norms = measure_norms(model, examples);
    ASSERT_EQ(norms.size(), 4u);
    const Json line = norms_to_json(norms[0], 5);
    for (const auto& [key, value] : line.items()) {
      EXPECT_EQ(value.is_null(), key != "step" && key != "layer" && key != "head") << key;
    }
  }
}

// Kernels that the registry may have: P without scores, and no P at all.
class FakeKernel final : public AttentionKernel {
 public:
  explicit FakeKernel(bool weights) : AttentionKernel({1, 4, 8, 4}, parse_attention("softmax")), weights_(weights) {}
  const std::vector<KernelParameter>& parameters() const override { return none_; }
  int64_t saved_floats(int64_t, float) const override { return 0; }
  void forward(const AttentionInput&, Matrix, float*, Arena&) const override {}
  void backward(const AttentionInput&, ConstMatrix, const float*, const AttentionGradients&, Arena&) const override {}
  double flops(int64_t, bool, float) const override { return 0.0; }
  std::string form(bool, float) const override { return "fake"; }
  bool has_weights() const override { return weights_; }
  void visit_weights(const AttentionInput& in, Arena&,
                     const std::function<void(const WeightRow&)>& visit) const override {
    const std::vector<float> p = {0.5f, -0.5f, 0.0f, 0.0f}, zeros(4), one = {0.0f, 3.0f, 0.0f, 0.01f};
    visit({0, 0, {}, p, std::nullopt});
    visit({0, 1, {}, zeros, std::nullopt});
    visit({0, 2, {}, one, std::nullopt});
    visit({0, 3, {}, one, std::nullopt});
  }

 private:
  bool weights_;
  std::vector<KernelParameter> none_;
};

AttentionNorms norms_of(const AttentionKernel& kernel) {
  std::vector<ExampleSums> sums(1, ExampleSums(1, 1, 1));
  std::vector<float> q(16);
  AttentionInput in;
  in.q = ConstMatrix(q.data(), 4, 4);
  Arena arena;
  sums[0].attention(kernel, in, arena);
  EXPECT_NE(sums[0].score_gradient_squares(in), nullptr);  // and nobody adds to it
  return summarise_norms(sums, 0, 0);
}

TEST(Norms, WhatAKernelDoesNotHaveIsUndefined) {
  const AttentionNorms feature_map = norms_of(FakeKernel(true));
  EXPECT_NEAR(feature_map.frobenius_mean, std::sqrt(0.5 + 2 * (9.0 + 1e-4)), 1e-6);
  EXPECT_TRUE(std::isnan(feature_map.frobenius_std));  // of one matrix
  EXPECT_TRUE(std::isnan(feature_map.jacobian));
  EXPECT_TRUE(std::isnan(feature_map.score_gradient));
  EXPECT_TRUE(std::isnan(feature_map.max_score));
  const double certain = 3.0 / 3.01;
  const double entropy = -certain * std::log(certain) - (1 - certain) * std::log(1 - certain);
  EXPECT_NEAR(feature_map.entropy, (std::log(2.0) + 2 * entropy) / 3, 1e-6);  // the row of zeros is left out
  EXPECT_EQ(feature_map.saturated_share, 0.5);
  EXPECT_EQ(feature_map.negative_share, 1.0 / 16);
  const Json line = norms_to_json(feature_map, 1);
  EXPECT_TRUE(line["jacobian_exact"].is_null() && line["jacobian"].is_null());

  const AttentionNorms nothing = norms_of(FakeKernel(false));
  const Json empty = norms_to_json(nothing, 1);
  for (const auto& [key, value] : empty.items()) {
    EXPECT_EQ(value.is_null(), key != "step" && key != "layer" && key != "head") << key;
  }
}

TEST(RowStatistics, OfAnyLength) {
  for_each_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const int64_t count : {0, 1, 3, 17, 511, 512, 513, 1100}) {
      Random random(3, RandomStream::kData);
      std::vector<float> row(static_cast<size_t>(count));
      for (float& value : row) value = static_cast<float>(random.normal());
      double squares = 0.0, sum = 0.0, entropy = 0.0, largest = 0.0;
      int64_t negative = 0;
      for (const float p : row) {
        squares += static_cast<double>(p) * p, sum += std::abs(p), largest = std::max<double>(largest, std::abs(p));
        negative += p < 0 ? 1 : 0;
      }
      for (const float p : row) entropy -= std::abs(p) / sum * std::log(std::abs(p) / sum);
      const RowStatistics found = row_statistics(row);
      EXPECT_NEAR(found.square_sum, squares, 1e-6 * squares);
      EXPECT_NEAR(found.absolute_sum, sum, 1e-6 * sum);
      EXPECT_NEAR(found.entropy, entropy, 1e-5 * entropy + 1e-7);
      EXPECT_EQ(found.largest, largest);
      EXPECT_EQ(found.negative, negative);
    }
  });
}

}  // namespace
}  // namespace lra
