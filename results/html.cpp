#include "results/html.h"

#include <fmt/format.h>

#include "results/html_style.h"

namespace lra {

namespace {

// A name may be broken after its colons, commas and slashes.
std::string name_html(const std::string& name) {
  std::string html;
  for (const char c : name) {
    html += html_escaped({&c, 1});
    if (c == ':' || c == ',' || c == '/') html += "<wbr>";
  }
  return html;
}

// A mark behind a figure is raised: "37.25c" and "95114!".
std::string figure_html(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  const bool marked = has_mark(text);
  const bool negative = text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
  if (negative) text.replace(0, 1, "−");
  if (!marked) return html_escaped(text);
  const char mark = text.back();
  text.pop_back();
  return fmt::format("{}<sup title=\"{}\">{}</sup>", html_escaped(text),
                     mark == 'c' ? "not shown to be above chance" : "parameters differ by over 10 %", mark);
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f ? ' ' : c;
    }
  }
  return result;
}

std::string html_table(const Table& table, const std::string& caption) {
  std::string text = "<div class=\"box\" tabindex=\"0\"><table>\n";
  if (!caption.empty()) text += "<caption><span>" + html_escaped(caption) + "</span></caption>\n";
  text += "<thead><tr>";
  for (const std::string& name : table.header) text += "<th scope=\"col\">" + html_escaped(name) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr><th scope=\"row\">" + name_html(row[0]) + "</th>";
    for (size_t i = 1; i < row.size(); ++i) text += "<td>" + figure_html(row[i]) + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string html_lines(const std::vector<std::string>& lines, const char* element) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("<{0}>{1}</{0}>\n", element, html_escaped(line));
  return text;
}

std::string html_block(const Block& block, int level) {
  std::string text;
  if (!block.heading.empty()) text += fmt::format("<h{0}>{1}</h{0}>\n", level, html_escaped(block.heading));
  text += html_lines(block.lines, "p");
  if (!block.table.header.empty()) text += html_table(block.table, "");
  if (!block.notes.empty()) text += "<ul class=\"notes\">\n" + html_lines(block.notes, "li") + "</ul>\n";
  return text;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63u] : '=';
    }
  }
  return text;
}

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n"
      "<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      html_escaped(title), kHtmlStyle, body);
}

}  // namespace lra
