#include "lib/util/program.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cxxopts.hpp>
#include <iostream>
#include <new>

#include "lib/util/check.h"

namespace lra {

namespace {

int report(const std::string& name, const std::string& message, int exit_code) {
  // Whatever was printed before the error comes first where both streams end in one place.
  std::cout.flush();
  std::fflush(stdout);
  std::cerr << name << ": " << one_line(message) << std::endl;
  return exit_code;
}

}  // namespace

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

int run_program(const std::string& name, const std::function<int()>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  int exit_code = 0;
  try {
    exit_code = body();
  } catch (const Error& error) {
    return report(name, error.what(), error.exit_code());
  } catch (const cxxopts::exceptions::exception& error) {
    return report(name, std::string(error.what()) + " (see " + name + " --help)", 2);
  } catch (const std::bad_alloc&) {
    return report(name, "out of memory", 1);
  } catch (const std::exception& error) {
    return report(name, error.what(), 1);
  } catch (...) {
    return report(name, "internal error: an exception of unknown type", 1);
  }
  errno = 0;
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::string reason = errno ? std::string(": ") + std::strerror(errno) : "";
    std::cerr << name << ": cannot write to standard output" << reason << std::endl;
    return exit_code ? exit_code : 1;
  }
  return exit_code;
}

}  // namespace lra
