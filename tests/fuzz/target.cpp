#include "tests/fuzz/target.h"

#include <unistd.h>

#include <stdexcept>

#include "lib/util/check.h"
#include "tasks/all_tasks.h"
#include "tests/datasets/temporary_folder.h"

namespace lra::fuzz {
namespace {

namespace fs = std::filesystem;

Outcomes counted;

// Files of inputs are made and read thousands of times a second: in memory where the system offers it.
const fs::path& scratch() {
  struct Folder {
    fs::path path;
    Folder() {
      std::error_code missing;
      const fs::path memory = "/dev/shm";
      const bool usable = fs::is_directory(memory, missing) && ::access(memory.c_str(), W_OK) == 0;
      std::string name = ((usable ? memory : fs::temp_directory_path()) / "lra-fuzz-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace

bool accepts(const std::function<void()>& read) {
  try {
    read();
    ++counted.taken;
    return true;
  } catch (const UsageError&) {
  } catch (const InputError&) {
  }
  ++counted.refused;
  return false;
}

const Outcomes& outcomes() { return counted; }

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error("a property does not hold: " + what);
}

fs::path scratch_file(const std::string& name, std::string_view bytes) {
  fs::path path = scratch() / name;
  put_file(path, std::string(bytes));
  return path;
}

fs::path scratch_folder(const std::string& name) {
  fs::path path = scratch() / name;
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

const std::vector<TaskFacts>& task_facts() {
  static const std::vector<TaskFacts> facts = [] {
    std::vector<TaskFacts> all;
    for (const std::string& name : task_names()) all.push_back(make_task("fuzz", name)->facts());
    return all;
  }();
  return facts;
}

void require_split(const DataSplit& split, const SplitBounds& bounds) {
  const auto require_ids = [&](const std::vector<int32_t>& ids) {
    require(bounds.max_length == 0 || static_cast<int64_t>(ids.size()) <= bounds.max_length, "a document is not cut");
    for (const int32_t id : ids) require(id >= bounds.least && id < bounds.vocabulary, "an id is out of range");
  };
  for (int64_t i = 0; i < split.size(); ++i) {
    const DataExample example = split.get(i);
    require_ids(example.ids);
    require_ids(example.ids2);
    require(split.pair() || example.ids2.empty(), "a second document where the task has one");
    require(example.label >= 0 && example.label < bounds.classes, "a label is out of range");
  }
  for (const Skipped& skipped : split.skipped()) {
    require(skipped.count > 0 && !skipped.reason.empty() && !skipped.first.empty(), "rows skipped without account");
  }
  require(split.truncated() >= 0 && split.truncated() <= split.size(), "cut more than read");
  require(split_hash(split) == split_hash(split), "the hash is not a function of the split");
}

}  // namespace lra::fuzz
