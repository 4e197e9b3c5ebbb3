#include "datasets/image/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "datasets/archive.h"
#include "datasets/image/find.h"
#include "datasets/image/grey.h"
#include "lib/util/check.h"

namespace lra::image {
namespace fs = std::filesystem;
namespace {

// Records are read so many at a time.
constexpr size_t kRecordsAtOnce = 64;
// The release's batches have 10,000; an archive can claim any number in a few bytes.
constexpr int64_t kMostRecords = 1'000'000;

// Good rows of one batch, grey.
struct Batch {
  std::vector<uint8_t> levels;  // kPixels a row
  std::vector<uint8_t> labels;
  SkippedRows skipped;
};

// Reads into `buffer`, says how many bytes; 0 at the end.
using Source = std::function<size_t(std::span<char> buffer)>;

// `where` names the batch in error lines, `name` is its own.
Batch read_batch(const std::string& where, const std::string& name, const Source& source, bool strict) {
  static const GreyScale grey;
  Batch batch;
  std::vector<char> buffer(kRecordsAtOnce * kRecord);
  int64_t bytes = 0, records = 0;
  for (bool at_end = false; !at_end;) {
    size_t filled = 0;
    while (filled < buffer.size()) {
      const size_t got = source(std::span(buffer).subspan(filled));
      if (got == 0) break;
      filled += got;
    }
    at_end = filled < buffer.size();
    bytes += static_cast<int64_t>(filled);
    if (bytes > kMostRecords * kRecord) throw InputError("{}: holds more than {} records", where, kMostRecords);
    for (size_t begin = 0; begin + kRecord <= filled; begin += kRecord) {
      const auto* record = reinterpret_cast<const uint8_t*>(buffer.data() + begin);
      ++records;
      if (record[0] >= kClasses) {
        if (strict) throw InputError("{}: record {}: the label is {}; labels are 0-9", where, records, record[0]);
        batch.skipped.add("bad label", fmt::format("{}:{}", name, records));
        continue;
      }
      batch.labels.push_back(record[0]);
      const size_t at = batch.levels.size();
      batch.levels.resize(at + kPixels);
      const uint8_t* const red = record + 1;
      for (size_t i = 0; i < kPixels; ++i) {
        batch.levels[at + i] = grey.level(red[i], red[kPixels + i], red[2 * kPixels + i]);
      }
    }
  }
  if (bytes == 0 || bytes % kRecord != 0) {
    throw InputError("{}: {} bytes long; a CIFAR-10 batch is one or more records of {} bytes", where, bytes, kRecord);
  }
  return batch;
}

using Batches = std::array<std::optional<Batch>, kBatches.size()>;

bool is_wanted(size_t batch, bool train, bool test) { return batch < kTrainBatches ? train : test; }

Batches read_archive(const fs::path& path, bool train, bool test, bool strict) {
  Batches batches;
  ArchiveReader archive(path);
  std::optional<std::string> folder;  // of the batches
  while (archive.next()) {
    const std::string& member = archive.name();
    const size_t slash = member.rfind('/');
    const std::string name = slash == std::string::npos ? member : member.substr(slash + 1);
    const std::string above = slash == std::string::npos ? "" : member.substr(0, slash + 1);
    const auto at = std::find(kBatches.begin(), kBatches.end(), std::string_view(name));
    if (at == kBatches.end()) continue;
    if (!folder) {
      folder = above;
    } else if (*folder != above) {
      throw InputError("{}: holds more than one Image set, {}{} and {}{}; pack one alone", path.string(), *folder, name,
                       above, name);
    }
    const auto batch = static_cast<size_t>(at - kBatches.begin());
    if (!is_wanted(batch, train, test)) continue;
    batches[batch] = read_batch(
        fmt::format("{}: {}", path.string(), member), name,
        [&](std::span<char> buffer) { return archive.read(buffer); }, strict);
  }
  return batches;
}

Batches read_folder(const fs::path& folder, bool train, bool test, bool strict) {
  Batches batches;
  for (size_t i = 0; i < kBatches.size(); ++i) {
    if (!is_wanted(i, train, test)) continue;
    const fs::path path = folder / kBatches[i];
    const auto fail = [&] { return InputError("{}: cannot be read: {}", path.string(), std::strerror(errno)); };
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
      throw InputError("{}: {}; {}", path.string(), error ? error.message() : "not a file", kRight);
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw fail();
    batches[i] = read_batch(
        path.string(), kBatches[i],
        [&](std::span<char> buffer) {
          file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
          if (file.bad()) throw fail();
          return static_cast<size_t>(file.gcount());
        },
        strict);
  }
  return batches;
}

// Gives the rows of some batches out in their order, and forgets each batch when it is through.
class RowStream {
 public:
  explicit RowStream(std::span<std::optional<Batch>> batches) : batches_(batches) {
    for (const auto& batch : batches_) rows_ += static_cast<int64_t>(batch->labels.size());
  }
  int64_t rows() const { return rows_; }

  // The next `count` rows; the first `limit` of them (0 = all) into `rows`, where there is one.
  void take(int64_t count, int64_t limit, ByteRows* rows) {
    for (int64_t taken = 0; taken < count; ++taken) {
      while (at_ == batches_[batch_]->labels.size()) next_batch();
      if (rows && (limit == 0 || taken < limit)) {
        rows->append(std::span<const uint8_t>(batches_[batch_]->levels).subspan(at_ * kPixels, kPixels),
                     batches_[batch_]->labels[at_]);
      }
      ++at_;
    }
  }

 private:
  void next_batch() {
    std::vector<uint8_t>().swap(batches_[batch_]->levels);
    ++batch_;
    at_ = 0;
  }

  std::span<std::optional<Batch>> batches_;
  int64_t rows_ = 0;
  size_t batch_ = 0, at_ = 0;
};

void note_skipped(std::span<const std::optional<Batch>> batches, ByteRows& rows) {
  for (const auto& batch : batches) {
    for (const Skipped& entry : batch->skipped.all()) rows.skip(entry.reason, entry.first, entry.count);
  }
}

}  // namespace

Splits read_set(const fs::path& path, const ReadOptions& options) {
  const bool train = options.want_train || options.want_validation;
  std::error_code ignored;
  Batches batches = fs::is_directory(path, ignored) ? read_folder(path, train, options.want_test, options.strict)
                                                    : read_archive(path, train, options.want_test, options.strict);
  for (size_t i = 0; i < batches.size(); ++i) {
    if (is_wanted(i, train, options.want_test) && !batches[i]) {
      throw InputError("{}: {} is missing in it; {}", path.string(), kBatches[i], kRight);
    }
  }
  const auto new_rows = [&] { return std::make_unique<ByteRows>(options.max_length, options.shifted ? 1 : 0); };

  Splits splits;
  if (train) {
    const auto training = std::span(batches).first(kTrainBatches);
    RowStream stream(training);
    if (options.want_train) splits.train = new_rows();
    if (options.want_validation) splits.validation = new_rows();
    note_skipped(training, options.want_train ? *splits.train : *splits.validation);
    if (options.want_train && stream.rows() == 0) {
      const Skipped& first = splits.train->skipped().front();
      throw InputError("{}: not one good training row; the first bad one is {}, {}", path.string(), first.first,
                       first.reason);
    }
    const int64_t validation = stream.rows() / 10;
    stream.take(stream.rows() - validation, options.limit_train, splits.train.get());
    stream.take(validation, options.limit_eval, splits.validation.get());
  }
  if (options.want_test) {
    const auto testing = std::span(batches).subspan(kTrainBatches);
    RowStream stream(testing);
    splits.test = new_rows();
    note_skipped(testing, *splits.test);
    stream.take(stream.rows(), options.limit_eval, splits.test.get());
  }
  return splits;
}

}  // namespace lra::image
