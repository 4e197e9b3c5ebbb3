// What every data set gives: token ids as the model gets them (0 = padding), a label, and an account of what was read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lra {

enum class Split { kTrain, kValidation, kTest };

// "train", "validation", "test".
const char* split_name(Split split);

struct DataExample {
  std::vector<int32_t> ids;
  std::vector<int32_t> ids2;  // pair tasks only
  int32_t label = 0;
};

// Rows that were left out, by reason.
struct Skipped {
  std::string reason;  // "unknown token"
  int64_t count = 0;
  std::string first;  // file:line of the first
};

// One split in memory or on disk. get() is thread-safe.
class DataSplit {
 public:
  virtual ~DataSplit() = default;
  virtual bool pair() const { return false; }  // two documents an example
  virtual int64_t size() const = 0;
  virtual DataExample get(int64_t index) const = 0;
  virtual const std::vector<Skipped>& skipped() const = 0;
  virtual int64_t truncated() const = 0;  // examples cut at the length limit
};

// XXH64 (seed 0) over label, number of ids and ids (int32, little endian) of every example, in order; pair tasks:
// label, number of ids, ids, number of ids2, ids2.
uint64_t split_hash(const DataSplit& split, int64_t limit = 0);

}  // namespace lra
