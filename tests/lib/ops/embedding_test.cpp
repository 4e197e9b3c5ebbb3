// Embeddings against plain loops on every instruction set, repeated ids, absent gradients, and indices out of range.
#include "lib/ops/embedding.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/data.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace lra {
namespace {

constexpr int kVocabulary = 11, kPlaces = 2000;

struct Tokens {
  std::vector<int32_t> ids, places;
  explicit Tokens(int n) {
    Random random(1, RandomStream::kData);
    for (int i = 0; i < n; ++i) {
      ids.push_back(static_cast<int32_t>(random.below(kVocabulary)));
      places.push_back(2 * i);  // gaps
    }
  }
};

TEST(Embedding, AgreesWithReference) {
  for (const int n : {0, 1, 7, 64, 1000}) {
    for (const int e : {1, 19, 64}) {
      const Tokens tokens(n);
      const GappedMatrix<float> token(kVocabulary, e, 0, 1), position(kPlaces, e, 0, 2), dx(n, e, 3, 3);
      const auto token64 = token.as<double>(), position64 = position.as<double>(), dx64 = dx.as<double>();
      GappedMatrix<double> x64(n, e, 0), d_token64(kVocabulary, e, 0, 4), d_position64(kPlaces, e, 0, 5);
      ref::embedding_forward<double>(tokens.ids, tokens.places, token64.view(), position64.view(), x64.view());
      ref::embedding_backward<double>(tokens.ids, tokens.places, dx64.view(), d_token64.view(), d_position64.view());
      for_each_target([&](const std::string& target) {
        GappedMatrix<float> x(n, e, 2), d_token(kVocabulary, e, 0, 4), d_position(kPlaces, e, 0, 5);
        embedding_forward(tokens.ids, tokens.places, token.view(), position.view(), x.view());
        embedding_backward(tokens.ids, tokens.places, dx.view(), d_token.view(), d_position.view());
        EXPECT_TRUE(x.intact() && d_token.intact() && d_position.intact()) << target;
        if (n > 0) {
          expect_close(x.values(), x64.values(), tolerance(NumberType::kFloat32, 2, largest(x64.values())),
                       target + " x");
        }
        expect_close(d_token.values(), d_token64.values(),
                     tolerance(NumberType::kFloat32, n, largest(d_token64.values())), target + " d_token");
        expect_close(d_position.values(), d_position64.values(),
                     tolerance(NumberType::kFloat32, 1, largest(d_position64.values())), target + " d_position");
        GappedMatrix<float> d_token_alone(kVocabulary, e, 0, 4), d_position_alone(kPlaces, e, 0, 5);
        embedding_backward(tokens.ids, tokens.places, dx.view(), d_token_alone.view(), {});
        embedding_backward(tokens.ids, tokens.places, dx.view(), {}, d_position_alone.view());
        EXPECT_EQ(d_token_alone.values(), d_token.values()) << target;
        EXPECT_EQ(d_position_alone.values(), d_position.values()) << target;
      });
    }
  }
}

TEST(Embedding, RejectsIndicesOutOfRange) {
  std::vector<float> table(8), out(4);
  const Matrix two(table.data(), 2, 4), x(out.data(), 1, 4);
  const std::vector<int32_t> good = {1}, above = {2}, below = {-1}, many = {0, 1};
  for (const auto& bad : {above, below, many}) {
    EXPECT_THROW(embedding_forward(bad, good, two, two, x), std::logic_error);
    EXPECT_THROW(embedding_forward(good, bad, two, two, x), std::logic_error);
    EXPECT_THROW(embedding_backward(bad, good, x, two, two), std::logic_error);
    EXPECT_THROW(embedding_backward(good, bad, x, two, two), std::logic_error);
  }
}

TEST(EmbeddingReference, BackwardIsTheDerivativeOfForward) {
  const std::vector<int32_t> ids = {2, 0, 2, 1}, places = {0, 1, 3, 4};
  GappedMatrix<double> token(3, 4, 0, 1), position(5, 4, 0, 2), dx(4, 4, 0, 3);
  const auto loss = [&] {
    GappedMatrix<double> x(4, 4, 0);
    ref::embedding_forward<double>(ids, places, token.read(), position.read(), x.view());
    const std::vector<double> out = x.values(), weights = dx.values();
    return std::inner_product(out.begin(), out.end(), weights.begin(), 0.0);
  };
  GappedMatrix<double> d_token(3, 4, 0), d_position(5, 4, 0);
  ref::embedding_backward<double>(ids, places, dx.read(), d_token.view(), d_position.view());
  expect_gradient(loss, {token.view().data, 12}, d_token.values(), "d_token");
  expect_gradient(loss, {position.view().data, 20}, d_position.values(), "d_position");
}

}  // namespace
}  // namespace lra
