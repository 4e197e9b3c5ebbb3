// Data as the model gets it.
#include "tasks/examples.h"

#include <gtest/gtest.h>

namespace lra {
namespace {

class Made final : public DataSplit {
 public:
  Made(std::vector<DataExample> examples, bool pair) : examples_(std::move(examples)), pair_(pair) {}
  bool pair() const override { return pair_; }
  int64_t size() const override { return static_cast<int64_t>(examples_.size()); }
  DataExample get(int64_t index) const override { return examples_[static_cast<size_t>(index)]; }
  const std::vector<Skipped>& skipped() const override { return skipped_; }
  int64_t truncated() const override { return 0; }

 private:
  std::vector<DataExample> examples_;
  bool pair_;
  std::vector<Skipped> skipped_;
};

TEST(Examples, PaddingIsDroppedAndPlacesAreKept) {
  const Made data({{{5, 0, 6}, {}, 3}, {{}, {}, 1}}, false);
  const DataExamples examples(data, ModelConfig{});
  EXPECT_EQ(examples.size(), 2);
  EXPECT_EQ(examples.get(0).first.ids, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(examples.get(0).first.places, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(examples.get(0).label, 3);
  EXPECT_TRUE(examples.get(1).first.ids.empty());
}

TEST(Examples, ClsTokenStandsFirst) {
  const Made data({{{0, 6}, {7}, 0}}, true);
  ModelConfig model;
  model.pooling = "cls";
  model.pair = true;
  model.vocabulary = 512;
  const Example example = DataExamples(data, model).get(0);
  EXPECT_EQ(example.first.ids, (std::vector<int32_t>{511, 6}));
  EXPECT_EQ(example.first.places, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(example.second.ids, (std::vector<int32_t>{511, 7}));
  EXPECT_THROW(DataExamples(data, ModelConfig{}), std::logic_error) << "pairs for a model of single documents";
}

}  // namespace
}  // namespace lra
