// What every fuzz target has in common. A target is a function of the bytes of one input: it hands them to a reader and
// throws when something is wrong. Refusing an input with UsageError or InputError is right, any other exception is a
// finding. A target runs under libFuzzer (tests/fuzz/fuzzer_main.cpp) and, over its corpus, as a unit test
// (tests/fuzz/replay_test.cpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/example.h"
#include "tasks/task.h"

namespace lra::fuzz {

using Bytes = std::span<const uint8_t>;

inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// True: `read` came to its end; false: it refused the input as it should. Everything else it throws goes on.
bool accepts(const std::function<void()>& read);

// How often `accepts` said yes and no since the start.
struct Outcomes {
  int64_t taken = 0, refused = 0;
};
const Outcomes& outcomes();

// A property that holds whatever the input: std::logic_error otherwise.
void require(bool holds, const std::string& what);

// The path of a file NAME with these bytes, in a folder of this process that lies in memory. NAME may hold folders.
// Valid until the next file of that name.
std::filesystem::path scratch_file(const std::string& name, std::string_view bytes);
// An empty folder NAME there.
std::filesystem::path scratch_folder(const std::string& name);

// What every split of a task promises: ids from 0 to vocabulary - 1 (from `least`), at most `max_length` a document
// (0 = any number), labels below `classes`; and its hash can be taken.
struct SplitBounds {
  int32_t least = 1, vocabulary = 0, classes = 0;
  int64_t max_length = 0;
};
void require_split(const DataSplit& split, const SplitBounds& bounds);

// Facts of every task.
const std::vector<TaskFacts>& task_facts();

// The targets, in the order of their names.
void archive(Bytes bytes);
void attention_spec(Bytes bytes);
void checkpoint(Bytes bytes);
void image_batch(Bytes bytes);
void json_text(Bytes bytes);
void listops_packed(Bytes bytes);
void listops_rows(Bytes bytes);
void pathfinder_metadata(Bytes bytes);
void pathfinder_packed(Bytes bytes);
void png_picture(Bytes bytes);
void recipe_file(Bytes bytes);
void record_file(Bytes bytes);
void retrieval_rows(Bytes bytes);
void run_logs(Bytes bytes);
void run_state(Bytes bytes);
void safetensors(Bytes bytes);

}  // namespace lra::fuzz
