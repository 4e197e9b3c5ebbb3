// The plot of lra-bench variants, written as SVG without a library: dots on a logarithmic axis of relative time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "benchmarks/variants_bench.h"

namespace lra {
namespace {

constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string plot_variants(const std::vector<VariantResult>& results, const std::string& title) {
  std::map<std::string, double> place;  // by the time at the greatest length that a variant runs at
  std::vector<std::string> names;
  std::vector<int64_t> lengths;
  double low = 0.8, high = 1.25;
  size_t longest = 0;
  for (const VariantResult& r : results) {
    if (!r.error.empty()) continue;
    if (!place.contains(r.attention)) names.push_back(r.attention);
    place[r.attention] = r.relative_time;
    if (std::find(lengths.begin(), lengths.end(), r.length) == lengths.end()) lengths.push_back(r.length);
    low = std::min(low, r.relative_time), high = std::max(high, r.relative_time);
    longest = std::max(longest, r.attention.size());
  }
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return place[a] < place[b]; });
  const double bottom = std::floor(std::log2(low) - 0.1), top = std::ceil(std::log2(high) + 0.1);

  constexpr int kRow = 20, kTop = 64, kPlot = 460;
  const int left = 24 + 7 * static_cast<int>(longest), rows_end = kTop + kRow * static_cast<int>(names.size());
  const int width = std::max(left + kPlot + 30, 40 + 8 * static_cast<int>(title.size())), height = rows_end + 50;
  const auto x = [&](double ratio) { return left + (std::log2(ratio) - bottom) / (top - bottom) * kPlot; };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"16\" y=\"22\" font-size=\"14\">{}</text>\n",
      width, height, escaped(title));
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int at = left + static_cast<int>(i) * 110;
    svg += fmt::format("<circle cx=\"{}\" cy=\"42\" r=\"5\" fill=\"{}\"/><text x=\"{}\" y=\"46\">{} tokens</text>\n",
                       at, kColours[i % std::size(kColours)], at + 10, lengths[i]);
  }
  for (int power = static_cast<int>(bottom); power <= static_cast<int>(top); ++power) {
    const double ratio = std::exp2(power), at = x(ratio);
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"{3}\"/>"
        "<text x=\"{0:.1f}\" y=\"{4}\" text-anchor=\"middle\">{5:g}</text>\n",
        at, kTop - 6, rows_end, power == 0 ? "#000000" : "#dddddd", rows_end + 16, ratio);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time of a training step, softmax = 1</text>\n",
                     left + kPlot / 2, rows_end + 36);
  for (size_t row = 0; row < names.size(); ++row) {
    const int y = kTop + kRow * static_cast<int>(row) + kRow / 2;
    svg += fmt::format(
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#eeeeee\"/>"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
        left, y, left + kPlot, y, left - 8, y + 4, escaped(names[row]));
    for (const VariantResult& r : results) {
      if (!r.error.empty() || r.attention != names[row]) continue;
      const auto colour = std::find(lengths.begin(), lengths.end(), r.length) - lengths.begin();
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{}\" r=\"5\" fill=\"{}\" fill-opacity=\"0.8\"/>\n",
                         x(r.relative_time), y, kColours[static_cast<size_t>(colour) % std::size(kColours)]);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace lra
