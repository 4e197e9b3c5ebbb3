#include <cmath>
#include <vector>

#include "lib/device/low_rank.h"
#include "lib/device/team.h"

namespace lra::device {

void weigh_rows(Context c, int64_t rows, int64_t width, float* x) {
  launch(c.device, rows, threads_for(width), [=] LRA_KERNEL(Team & team) {
    float* row = x + team.block() * width;
    const float top = team.max(width, [=](int64_t j) { return row[j]; });
    const float sum = team.sum(width, [=](int64_t j) { return std::exp(row[j] - top); });
    team.for_each(width, [=](int64_t j) { row[j] = std::exp(row[j] - top) / sum; });
  });
}

void weigh_rows_backward(Context c, int64_t rows, int64_t width, const float* p, float* dp) {
  launch(c.device, rows, threads_for(width), [=] LRA_KERNEL(Team & team) {
    const float* of = p + team.block() * width;
    float* row = dp + team.block() * width;
    const float dot = team.sum(width, [=](int64_t j) { return of[j] * row[j]; });
    team.for_each(width, [=](int64_t j) { row[j] = of[j] * (row[j] - dot); });
  });
}

template <class Make>
void SequenceProducts::all(Context c, const Make& make) const {
  std::vector<Product> products;
  for (int64_t s = 0; s < call_.batch.sequences; ++s) {
    if (call_.batch.length[s] == 0) continue;
    products.push_back(make(s));
    products.back().count = heads_;
  }
  c.device.multiply(products);
}

void SequenceProducts::reduce(Context c, ConstMatrix x, ConstMatrix y, float* marks, float alpha, float beta) const {
  all(c, [&](int64_t s) {
    Product p = product(first_head(call_, s, x, heads_), Transpose::kYes, first_head(call_, s, y, heads_),
                        Transpose::kNo, {marks + s * heads_ * rows_ * d_, rows_, d_}, alpha, beta);
    p.a_next = rows_, p.b_next = d_, p.c_next = rows_ * d_;
    return p;
  });
}

void SequenceProducts::expand(Context c, ConstMatrix x, const float* marks, Matrix y, float alpha, float beta) const {
  all(c, [&](int64_t s) {
    Product p = product(first_head(call_, s, x, heads_), Transpose::kNo, {marks + s * heads_ * rows_ * d_, rows_, d_},
                        Transpose::kNo, first_head(call_, s, y, heads_), alpha, beta);
    p.a_next = rows_, p.b_next = rows_ * d_, p.c_next = d_;
    return p;
  });
}

void SequenceProducts::meet(Context c, ConstMatrix y, const float* marks, Matrix x, float alpha, float beta) const {
  all(c, [&](int64_t s) {
    Product p = product(first_head(call_, s, y, heads_), Transpose::kNo, {marks + s * heads_ * rows_ * d_, rows_, d_},
                        Transpose::kYes, first_head(call_, s, x, heads_), alpha, beta);
    p.a_next = d_, p.b_next = rows_ * d_, p.c_next = rows_;
    return p;
  });
}

}  // namespace lra::device
