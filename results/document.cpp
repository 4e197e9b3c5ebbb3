#include "results/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace lra {

namespace {

constexpr std::string_view kGap = "  ";

// Breaks at blanks; words longer than a line stay whole.
std::string wrapped(const std::string& line, size_t width) {
  std::string text;
  size_t column = 0;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (column > 0 && column + 1 + end - begin > width) {
      text += "\n  ";
      column = 2;
    } else if (column > 0) {
      text += ' ';
      ++column;
    }
    text.append(line, begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return text + '\n';
}

std::string table_text(const Table& table, size_t width) {
  std::vector<size_t> widths;
  for (const std::string& name : table.header) widths.push_back(name.size());
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  size_t figures = 0;
  for (size_t i = 1; i < widths.size(); ++i) figures += kGap.size() + widths[i];
  widths[0] = std::min(widths[0], std::max(table.header[0].size(), width > figures ? width - figures : size_t{0}));

  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    const bool apart = row[0].size() > widths[0];
    if (apart) text += row[0] + '\n';
    text += fmt::format("{:<{}}", apart ? "" : row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) text += fmt::format("{}{:>{}}", kGap, row[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  add(table.header);
  for (const auto& row : table.rows) add(row);
  return text;
}

// No sign of Markdown is left to a name: specs hold '_' and '|' could end a cell.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\`*_|<>~[]").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

bool has_mark(const std::string& cell) {
  if (cell.size() < 2) return false;
  const std::string_view figure = std::string_view(cell).substr(0, cell.size() - 1);
  if (cell.back() == '!') return figure.find_first_not_of("0123456789") == std::string_view::npos;
  return cell.back() == 'c' && figure.find('.') != std::string_view::npos &&  // digits and c are a hash
         figure.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string as_text(const Document& document, size_t width) {
  std::string text;
  for (const Block& block : document) {
    if (!text.empty()) text += '\n';
    if (!block.heading.empty()) text += "== " + block.heading + '\n';
    for (const std::string& line : block.lines) text += wrapped(line, width);
    if (!block.table.header.empty()) text += table_text(block.table, width);
    for (const std::string& note : block.notes) text += wrapped(note, width);
  }
  return text;
}

std::string as_markdown(const Document& document) {
  std::string text;
  for (const Block& block : document) {
    if (!text.empty()) text += '\n';
    if (!block.heading.empty()) text += "## " + escaped(block.heading) + "\n\n";
    for (const std::string& line : block.lines) text += escaped(line) + "\n\n";
    const auto add = [&](const std::vector<std::string>& row) {
      for (const std::string& cell : row) text += "| " + escaped(cell) + ' ';
      text += "|\n";
    };
    if (!block.table.header.empty()) {
      add(block.table.header);
      text += "|---";
      for (size_t i = 1; i < block.table.header.size(); ++i) text += "|--:";
      text += "|\n";
      for (const auto& row : block.table.rows) add(row);
      if (!block.notes.empty()) text += '\n';
    }
    for (const std::string& note : block.notes) text += "- " + escaped(note) + '\n';
  }
  return text;
}

}  // namespace lra
