#include "datasets/pathfinder/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "lib/util/check.h"
#include "lib/util/cpu.h"
#include "lib/util/files.h"

namespace lra::pathfinder {
namespace {

// A range of the pictures, which the three splits share.
class PictureSplit final : public DataSplit {
 public:
  struct Range {
    int64_t begin = 0, size = 0;
    bool tells_skipped = false;
  };

  PictureSplit(std::shared_ptr<const Pictures> pictures, const Range& range, const ReadOptions& options)
      : pictures_(std::move(pictures)), range_(range), shift_(options.shifted ? 1 : 0) {
    pixels_ = static_cast<size_t>(pictures_->size) * static_cast<size_t>(pictures_->size);
    length_ = pixels_;
    if (options.max_length > 0) length_ = std::min(length_, static_cast<size_t>(options.max_length));
  }

  int64_t size() const override { return range_.size; }

  DataExample get(int64_t index) const override {
    check(index >= 0 && index < range_.size, "picture {} of {}", index, range_.size);
    const int64_t picture = range_.begin + index;
    DataExample example;
    example.label = pictures_->labels[static_cast<size_t>(picture)];
    if (pictures_->load) {
      std::vector<uint8_t> pixels(pixels_);
      pictures_->load(picture, pixels);
      put_ids(pixels.data(), example.ids);
    } else {
      put_ids(pictures_->held.data() + static_cast<size_t>(picture) * pixels_, example.ids);
    }
    return example;
  }

  const std::vector<Skipped>& skipped() const override {
    static const std::vector<Skipped> kNone;
    return range_.tells_skipped ? pictures_->skipped.all() : kNone;
  }

  int64_t truncated() const override { return length_ < pixels_ ? range_.size : 0; }

 private:
  void put_ids(const uint8_t* pixels, std::vector<int32_t>& ids) const {
    ids.resize(length_);
    std::transform(pixels, pixels + length_, ids.begin(), [&](uint8_t level) { return level + shift_; });
  }

  std::shared_ptr<const Pictures> pictures_;
  Range range_;
  int32_t shift_;
  size_t pixels_ = 0, length_ = 0;  // of a picture, of an example
};

}  // namespace

std::vector<int64_t> split_order(const std::vector<std::string>& paths) {
  std::vector<uint64_t> hashes(paths.size());
  std::transform(paths.begin(), paths.end(), hashes.begin(), [](const std::string& path) { return hash_bytes(path); });
  std::vector<int64_t> order(paths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    return hashes[i] != hashes[j] ? hashes[i] < hashes[j] : paths[i] < paths[j];
  });
  return order;
}

Splits cut_splits(Pictures pictures, const ReadOptions& options, const std::string& place) {
  const auto all = std::make_shared<const Pictures>(std::move(pictures));
  const auto count = static_cast<int64_t>(all->labels.size());
  const int64_t first = count * 8 / 10, second = count * 9 / 10;
  if (first == 0) {
    std::string why = count == 0 ? "there is none at all" : "one picture alone is for testing";
    if (const auto& skipped = all->skipped.all(); !skipped.empty()) {
      why = fmt::format("the first bad one is {}, {}", skipped[0].first, skipped[0].reason);
    }
    throw InputError("{}: not one good training picture; {}", place, why);
  }
  const auto split = [&](Split which, int64_t begin, int64_t end, int64_t limit) {
    const int64_t size = limit > 0 ? std::min(limit, end - begin) : end - begin;
    return std::make_unique<PictureSplit>(
        all, PictureSplit::Range{.begin = begin, .size = size, .tells_skipped = options.told_with == which}, options);
  };
  return {.train = split(Split::kTrain, 0, first, options.limit_train),
          .validation = split(Split::kValidation, first, second, options.limit_eval),
          .test = split(Split::kTest, second, count, options.limit_eval)};
}

void for_each(int64_t count, int threads, const std::function<void(int64_t)>& work,
              const std::function<void(int64_t done, int64_t total)>& progress) {
  constexpr int64_t kPiece = 64;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  int64_t done = 0;
  const auto work_pieces = [&] {
    try {
      for (int64_t begin; (begin = next.fetch_add(kPiece)) < count;) {
        const int64_t end = std::min(count, begin + kPiece);
        for (int64_t i = begin; i < end; ++i) work(i);
        const std::lock_guard lock(mutex);
        done += end - begin;
        if (progress && !failed) progress(done, count);
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  };
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  const int64_t workers = std::min<int64_t>(threads > 0 ? threads : default_threads(), pieces);
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < workers; ++i) others.emplace_back(work_pieces);
    work_pieces();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace lra::pathfinder
