// The files of tasks/recipes/, put into the program when it is built (cmake/embed_files.cmake).
#pragma once

#include <map>
#include <string>

namespace lra {

const std::map<std::string, std::string>& recipe_files();  // name without ".json" -> text

}  // namespace lra
