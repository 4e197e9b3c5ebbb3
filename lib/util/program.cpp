#include "lib/util/program.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cxxopts.hpp>
#include <iostream>
#include <new>
#include <string_view>

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

// How many bytes from the first on are a character that moves a cursor, ends a line or turns the direction of writing;
// 0: none. Those of UTF-8 are U+0080 to U+009F, U+2028 to U+202E and U+2066 to U+2069.
size_t control_at(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  if (byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) return 3;
  return byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9 ? 3 : 0;
}

// By itself glibc learns from every large block that is freed to keep the next one that large among small ones, where
// it can no longer be given back: each evaluation would leave a few megabytes behind.
void give_freed_memory_back() {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  std::string line;
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = control_at(std::string_view(text).substr(i));
    line += bytes > 0 ? ' ' : text[i];
    i += std::max<size_t>(1, bytes);
  }
  return line;
}

int run_program(const std::string& name, const std::function<int()>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  give_freed_memory_back();
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
