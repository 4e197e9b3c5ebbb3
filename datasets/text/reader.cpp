#include "datasets/text/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datasets/archive.h"
#include "datasets/text/find.h"
#include "lib/util/check.h"

namespace lra::text {
namespace fs = std::filesystem;
namespace {

constexpr size_t kHalves = 2, kClasses = 2;
constexpr std::string_view kHalfNames[kHalves] = {"train", "test"};
constexpr std::string_view kClassNames[kClasses] = {"neg", "pos"};  // by label
constexpr size_t kTrain = 0, kTest = 1;

constexpr size_t kChunk = size_t{64} << 10;

struct Review {
  int64_t number = 0;  // of the file name
  size_t label = 0;
  std::string name;   // of the file
  std::string bytes;  // one more than the limit at most, so that a cut row is known as one
  uint64_t hash = 0;  // XXH64 of all bytes
};

// "17_9.txt" -> 17.
std::optional<int64_t> review_number(std::string_view name) {
  constexpr std::string_view kEnding = ".txt";
  constexpr size_t kMostDigits = 18;
  if (!name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const size_t bar = name.find('_');
  if (bar == std::string_view::npos) return std::nullopt;
  const std::string_view number = name.substr(0, bar), rating = name.substr(bar + 1);
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.size() <= kMostDigits &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!digits(number) || !digits(rating)) return std::nullopt;
  int64_t value = 0;
  for (const char c : number) value = value * 10 + (c - '0');
  return value;
}

// Reads into `buffer`, says how many bytes; 0 at the end.
using Source = std::function<size_t(std::span<char> buffer)>;

// Collects the reviews of one set from wherever they come, in any order.
class Collector {
 public:
  Collector(const ReadOptions& options, bool want_train, bool want_test)
      : options_(options),
        wanted_{want_train, want_test},
        hash_(XXH64_createState(), &XXH64_freeState),
        chunk_(kChunk) {
    if (!hash_) throw std::bad_alloc();
  }

  bool wanted(size_t half) const { return wanted_[half]; }
  void met(size_t half, size_t label) { met_[half][label] = true; }
  bool was_met(size_t half, size_t label) const { return met_[half][label]; }

  // `where` names the file in an error line, `name` is its own.
  void bad(size_t half, size_t label, const std::string& where, std::string_view name, const char* reason,
           const std::string& detail) {
    if (options_.strict) throw InputError("{}: {}", where, detail);
    skipped_[half].add(reason, fmt::format("{}/{}/{}", kHalfNames[half], kClassNames[label], name));
  }

  void add(size_t half, size_t label, std::string_view name, int64_t number, const Source& source) {
    Review review;
    review.number = number;
    review.label = label;
    review.name = name;
    const size_t most = options_.max_length > 0 ? static_cast<size_t>(options_.max_length) + 1 : std::string::npos;
    XXH64_reset(hash_.get(), 0);
    while (const size_t got = source(chunk_)) {
      XXH64_update(hash_.get(), chunk_.data(), got);
      review.bytes.append(chunk_.data(), std::min(got, most - review.bytes.size()));
    }
    review.hash = XXH64_digest(hash_.get());
    std::vector<Review>& reviews = reviews_[half];
    const auto [at, is_new] = index_[half][label].emplace(review.name, reviews.size());
    if (is_new) {
      reviews.push_back(std::move(review));
    } else {
      reviews[at->second] = std::move(review);
    }
  }

  // The reviews of a half in the order of rows. Once.
  std::vector<Review> take(size_t half) {
    std::vector<Review> reviews = std::move(reviews_[half]);
    std::sort(reviews.begin(), reviews.end(), [](const Review& a, const Review& b) {
      return std::tie(a.number, a.label, a.name) < std::tie(b.number, b.label, b.name);
    });
    return reviews;
  }

  const std::vector<Skipped>& skipped(size_t half) const { return skipped_[half].all(); }

 private:
  const ReadOptions& options_;
  std::array<bool, kHalves> wanted_;
  std::array<std::array<bool, kClasses>, kHalves> met_ = {};
  std::array<std::vector<Review>, kHalves> reviews_;
  std::array<std::array<std::unordered_map<std::string, size_t>, kClasses>, kHalves> index_;  // name -> in reviews_
  std::array<SkippedRows, kHalves> skipped_;
  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> hash_;
  std::vector<char> chunk_;
};

// Takes the last part off a path: "a/b/c" -> "c", leaving "a/b".
std::string_view split_off(std::string_view& path) {
  const size_t slash = path.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  return last;
}

std::optional<size_t> place_of(std::string_view name, std::span<const std::string_view> names) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<size_t>(at - names.begin());
}

void read_archive(const fs::path& path, Collector& collector) {
  ArchiveReader archive(path);
  std::optional<std::string> root;  // what stands before train/ and test/
  while (archive.next()) {
    std::string_view rest = archive.name();
    const std::string_view name = split_off(rest);
    const auto label = place_of(split_off(rest), kClassNames);
    const auto half = place_of(split_off(rest), kHalfNames);
    if (!label || !half || name.empty()) continue;
    if (!root) {
      root = rest;
    } else if (*root != rest) {
      throw InputError("{}: holds more than one Text set, under '{}/' and '{}/'; pack one alone", path.string(), *root,
                       rest);
    }
    collector.met(*half, *label);
    if (!collector.wanted(*half)) continue;
    const auto bad = [&](const char* reason, const std::string& detail) {
      collector.bad(*half, *label, fmt::format("{}: {}", path.string(), archive.name()), name, reason, detail);
    };
    const auto number = review_number(name);
    if (!number) {
      bad("not a review", "not a review; the name must be NUMBER_RATING.txt, as 17_9.txt");
    } else if (archive.is_link()) {
      bad("a link", "a link to another file; pack the files themselves (tar --dereference --hard-dereference)");
    } else {
      collector.add(*half, *label, name, *number, [&](std::span<char> buffer) { return archive.read(buffer); });
    }
  }
}

// A file open for reading; closed with it.
class OpenFile {
 public:
  explicit OpenFile(const fs::path& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category());
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  size_t read(std::span<char> buffer) const {
    for (;;) {
      const ssize_t got = ::read(descriptor_, buffer.data(), buffer.size());
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) throw std::system_error(errno, std::generic_category());
    }
  }

 private:
  int descriptor_;
};

void read_folder(const fs::path& root, size_t half, size_t label, Collector& collector) {
  const fs::path folder = root / kHalfNames[half] / kClassNames[label];
  std::vector<std::string> names;  // sorted, so that the first bad file is the same one everywhere
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) throw InputError("{}: cannot be read: {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    const auto bad = [&](const char* reason, const std::string& detail) {
      collector.bad(half, label, path.string(), name, reason, detail);
    };
    collector.met(half, label);
    const auto number = review_number(name);
    const fs::file_status status = fs::status(path, error);
    if (number && error) {
      bad("cannot be read", fmt::format("cannot be read: {}", error.message()));
      continue;
    }
    if (!number || !fs::is_regular_file(status)) {
      bad("not a review", "not a review; it must be a file NUMBER_RATING.txt, as 17_9.txt");
      continue;
    }
    try {
      const OpenFile file(path);
      collector.add(half, label, name, *number, [&](std::span<char> buffer) { return file.read(buffer); });
    } catch (const std::system_error& fault) {
      bad("cannot be read", fmt::format("cannot be read: {}", fault.code().message()));
    }
  }
}

// Of each class the tenth with the lowest hash.
std::vector<bool> chosen_tenth(const std::vector<Review>& reviews) {
  std::vector<bool> chosen(reviews.size());
  for (size_t label = 0; label < kClasses; ++label) {
    std::vector<std::pair<uint64_t, size_t>> by_hash;  // equal hashes: in the order of rows
    for (size_t i = 0; i < reviews.size(); ++i) {
      if (reviews[i].label == label) by_hash.emplace_back(reviews[i].hash, i);
    }
    std::sort(by_hash.begin(), by_hash.end());
    for (size_t i = 0; i < by_hash.size() / 10; ++i) chosen[by_hash[i].second] = true;
  }
  return chosen;
}

class RowsOf {
 public:
  RowsOf(const ReadOptions& options, int64_t limit)
      : rows_(std::make_unique<ByteRows>(options.max_length, 1)), limit_(limit) {}

  void append(const Review& review) {
    if (limit_ == 0 || rows_->size() < limit_) rows_->append(review.bytes, static_cast<int32_t>(review.label));
  }
  std::unique_ptr<ByteRows> take(const std::vector<Skipped>& skipped) {
    for (const Skipped& entry : skipped) rows_->skip(entry.reason, entry.first, entry.count);
    return std::move(rows_);
  }

 private:
  std::unique_ptr<ByteRows> rows_;
  int64_t limit_;
};

}  // namespace

Splits read_set(const fs::path& path, const ReadOptions& options) {
  const bool tenth = options.want_validation && !options.validation_is_test;
  Collector collector(options, options.want_train || tenth,
                      options.want_test || (options.want_validation && options.validation_is_test));
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    read_archive(path, collector);
  } else {
    for (size_t half = 0; half < kHalves; ++half) {
      for (size_t label = 0; label < kClasses; ++label) {
        if (collector.wanted(half)) read_folder(path, half, label, collector);
      }
    }
  }
  for (size_t half = 0; half < kHalves; ++half) {
    for (size_t label = 0; label < kClasses; ++label) {
      if (collector.wanted(half) && !collector.was_met(half, label)) {
        throw InputError("{}: {}/{} holds no file; {}", path.string(), kHalfNames[half], kClassNames[label], kRight);
      }
    }
  }

  Splits splits;
  if (collector.wanted(kTrain)) {
    std::vector<Review> reviews = collector.take(kTrain);
    const std::vector<bool> chosen =
        options.validation_is_test ? std::vector<bool>(reviews.size()) : chosen_tenth(reviews);
    RowsOf train(options, options.limit_train), validation(options, options.limit_eval);
    for (size_t i = 0; i < reviews.size(); ++i) {
      (chosen[i] ? validation : train).append(reviews[i]);
      std::string().swap(reviews[i].bytes);
    }
    const auto& skipped = collector.skipped(kTrain);
    if (options.want_train) {
      splits.train = train.take(skipped);
      if (splits.train->size() == 0) {
        throw InputError("{}: not one good training review; the first bad file is {}, {}", path.string(),
                         skipped[0].first, skipped[0].reason);
      }
    }
    if (tenth) splits.validation = validation.take(options.want_train ? std::vector<Skipped>() : skipped);
  }
  if (collector.wanted(kTest)) {
    std::vector<Review> reviews = collector.take(kTest);
    RowsOf validation(options, options.limit_eval), test(options, options.limit_eval);
    const bool both = options.want_validation && options.validation_is_test;
    for (Review& review : reviews) {
      if (both) validation.append(review);
      if (options.want_test) test.append(review);
      std::string().swap(review.bytes);
    }
    if (both) splits.validation = validation.take(collector.skipped(kTest));
    if (options.want_test) splits.test = test.take(collector.skipped(kTest));
  }
  return splits;
}

}  // namespace lra::text
