#include "tasks/all_tasks.h"

#include <fmt/ranges.h>

#include "lib/util/check.h"
#include "tasks/image.h"
#include "tasks/listops.h"
#include "tasks/pathfinder.h"
#include "tasks/retrieval.h"
#include "tasks/text.h"

namespace lra {

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = {"listops", "text", "retrieval", "image", "pathfinder"};
  return names;
}

std::unique_ptr<Task> make_task(const std::string& where, const std::string& name) {
  if (name == "listops") return std::make_unique<ListopsTask>();
  if (name == "text") return std::make_unique<TextTask>();
  if (name == "retrieval") return std::make_unique<RetrievalTask>();
  if (name == "image") return std::make_unique<ImageTask>();
  if (name == "pathfinder") return std::make_unique<PathfinderTask>();
  throw UsageError("{}: unknown task '{}'; want {}", where, name, fmt::join(task_names(), ", "));
}

}  // namespace lra
