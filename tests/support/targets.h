// Runs a test once for every instruction set that Highway compiled the ops for and this processor has.
#pragma once

#include <functional>
#include <string>

namespace lra {

// work(name of the instruction set); the usual choice is back afterwards, also after an exception.
void for_each_target(const std::function<void(const std::string&)>& work);

}  // namespace lra
