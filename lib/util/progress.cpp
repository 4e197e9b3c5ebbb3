#include "lib/util/progress.h"

#include <algorithm>
#include <cmath>

#include "lib/util/check.h"

namespace lra {

ProgressMode progress_mode(const std::string& word) {
  if (word == "none") return ProgressMode::kNone;
  if (word == "plain") return ProgressMode::kPlain;
  if (word == "bar") return ProgressMode::kBar;
  if (word == "auto") return terminal_columns() > 0 ? ProgressMode::kBar : ProgressMode::kPlain;
  throw UsageError("--progress: unknown value '{}'; want auto, bar, plain, none", word);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  if (seconds < 59.95) return fmt::format("{:.1f}s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
}

std::string progress_bar(double share) {
  constexpr int kWidth = 24;
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  std::string bar = "[" + std::string(static_cast<size_t>(full), '=');
  if (full < kWidth) bar += ">" + std::string(static_cast<size_t>(kWidth - full - 1), ' ');
  return bar + "]";
}

Progress::Progress(Log& log, ProgressMode mode, std::string label, double plain_seconds)
    : log_(log), mode_(mode), label_(std::move(label)), plain_seconds_(plain_seconds) {}

Progress::~Progress() { finish(); }

void Progress::update(int64_t done, int64_t total, const std::string& details) {
  if (mode_ == ProgressMode::kNone) return;
  const Clock::time_point now = Clock::now();
  if (!started_) {
    started_ = true;
    first_ = last_ = now;
    first_done_ = done;
    if (mode_ == ProgressMode::kPlain) return;
    last_ -= std::chrono::seconds(1);
  }
  const double since = std::chrono::duration<double>(now - last_).count();
  if (mode_ == ProgressMode::kBar) {
    if (since < 0.1 && done != total) return;
    log_.status(bar(done, total, details, now));
  } else {
    if (plain_seconds_ <= 0 || since < plain_seconds_) return;
    plain_line(done, total, details);
  }
  last_ = now;
}

void Progress::plain_line(int64_t done, int64_t total, const std::string& details) {
  if (mode_ != ProgressMode::kPlain) return;
  std::string text = fmt::format("{} {}/{}", label_, done, total);
  if (!details.empty()) text += "  " + details;
  const double left = seconds_left(done, total, Clock::now());
  if (left >= 0 && done < total) text += "  left " + format_duration(left);
  log_.line(text);
}

void Progress::finish() {
  if (mode_ == ProgressMode::kBar && started_) log_.status("");
}

double Progress::seconds_left(int64_t done, int64_t total, Clock::time_point now) const {
  if (!started_ || done <= first_done_) return -1.0;
  const double spent = std::chrono::duration<double>(now - first_).count();
  return spent / static_cast<double>(done - first_done_) * static_cast<double>(total - done);
}

std::string Progress::bar(int64_t done, int64_t total, const std::string& details, Clock::time_point now) const {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
  std::string text = fmt::format("{} {} {}/{}", label_, progress_bar(share), done, total);
  if (!details.empty()) text += "  " + details;
  const double left = seconds_left(done, total, now);
  if (left >= 0) text += "  ETA " + format_duration(left);
  return text;
}

}  // namespace lra
