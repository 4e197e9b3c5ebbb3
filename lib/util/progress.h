// Progress of long work: a bar on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lib/util/log.h"

namespace lra {

enum class ProgressMode { kNone, kPlain, kBar };

// "auto" (bar on a terminal, else plain), "bar", "plain" or "none"; UsageError on anything else.
ProgressMode progress_mode(const std::string& word);

std::string format_duration(double seconds);  // "7.2s", "3m 05s", "2h 07m"

std::string progress_bar(double share);  // "[====>     ]"

class Progress {
 public:
  // `label` says what is being done. In plain mode a line is printed at most every `plain_seconds`; 0 = never by time.
  Progress(Log& log, ProgressMode mode, std::string label, double plain_seconds);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `details` stands behind the count ("loss 2.1  accuracy 0.30"). Cheap enough to call at every step: the bar is drawn
  // ten times a second at most. The time left follows from what was done since the first call.
  void update(int64_t done, int64_t total, const std::string& details = "");
  // A plain line with the same content, whatever the time.
  void plain_line(int64_t done, int64_t total, const std::string& details);
  void finish();  // takes the bar away

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_left(int64_t done, int64_t total, Clock::time_point now) const;
  std::string bar(int64_t done, int64_t total, const std::string& details, Clock::time_point now) const;

  Log& log_;
  ProgressMode mode_;
  std::string label_;
  double plain_seconds_;
  bool started_ = false;
  int64_t first_done_ = 0;
  Clock::time_point first_, last_;
};

}  // namespace lra
