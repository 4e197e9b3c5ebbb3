// Data that a task generates or unpacks once for all runs of a user.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "lib/util/log.h"

namespace lra {

// $XDG_CACHE_HOME/lra or ~/.cache/lra. InputError where neither is set.
std::filesystem::path cache_folder();

// Makes `path` by calling make() unless it is there. Of several processes one makes it and the others wait; make() must
// write beside and rename. InputError when the folder can't be written.
void make_once(const std::filesystem::path& path, Log& log, const std::function<void()>& make);

}  // namespace lra
