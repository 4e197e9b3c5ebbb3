#include "results/latex.h"

#include <fmt/format.h>

namespace lra {

namespace {

const char* latex_of(char c) {
  switch (c) {
    case '\\': return "\\textbackslash{}";
    case '~': return "\\textasciitilde{}";
    case '^': return "\\textasciicircum{}";
    case '<': return "\\textless{}";
    case '>': return "\\textgreater{}";
    case '|': return "\\textbar{}";
    case '"': return "{''}";
    case '\'': return "{'}";
    case '`': return "{`}";
    case '-': return "{-}";  // two in a row would be a dash
    case '{': return "\\{";
    case '}': return "\\}";
    case '$': return "\\$";
    case '&': return "\\&";
    case '#': return "\\#";
    case '_': return "\\_";
    case '%': return "\\%";
    case '[': return "{[}";  // after \\ it would be a distance
    default: return nullptr;
  }
}

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// Figures in math mode, where '-' is a minus sign; a mark behind them is raised.
std::string latex_figure(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (text == "-") return "--";
  const bool marked = has_mark(text);
  const std::string_view figure = std::string_view(text).substr(0, text.size() - (marked ? 1 : 0));
  if (figure.empty() || figure.find_first_not_of("0123456789.,+-[] ") != std::string_view::npos) {
    return latex_escaped(text);
  }
  return fmt::format("${}{}$", figure, marked ? fmt::format("^{{{}}}", text.back()) : "");
}

std::string row_text(const std::vector<std::string>& row) {
  std::string text = latex_name(row[0]);
  for (size_t i = 1; i < row.size(); ++i) text += " & " + latex_figure(row[i]);
  return text + " \\\\\n";
}

}  // namespace

std::string latex_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const char* known = latex_of(c)) {
      result += known;
    } else if (byte >= 0x80) {
      if (starts_character(c)) result += '?';
    } else {
      result += byte < 0x20 || byte == 0x7f ? ' ' : c;
    }
  }
  return result;
}

std::string latex_name(std::string_view text) {
  std::string result = "\\texttt{";
  for (const char c : text) {
    result += latex_escaped({&c, 1});
    if (c == ':' || c == ',') result += "\\allowbreak{}";
  }
  return result + '}';
}

std::string latex_float(const std::string& caption, const std::string& columns, const std::string& header,
                        const std::string& rows, const std::vector<std::string>& notes, int number) {
  std::string text = fmt::format(
      "\n\\begin{{table}}[htbp]\n\\centering\\footnotesize\\setlength{{\\tabcolsep}}{{3pt}}\n"
      "\\caption{{{}}}\n\\label{{tab:lra-{}}}\\vspace{{4pt}}\n\\begin{{tabular}}{{@{{}}{}@{{}}}}\n\\toprule\n{} "
      "\\\\\n\\midrule\n"
      "{}\\bottomrule\n\\end{{tabular}}\n",
      caption, number, columns, header, rows);
  for (const std::string& note : notes) {
    text += fmt::format("\\par\\smallskip\\parbox{{\\linewidth}}{{\\raggedright {}}}\n", latex_escaped(note));
  }
  return text + "\\end{table}\n";
}

std::string as_latex(const Document& document, int number) {
  std::string text;
  for (const Block& block : document) {
    std::string lines = latex_escaped(block.heading);
    for (const std::string& line : block.lines) lines += (lines.empty() ? "" : ". ") + latex_escaped(line);
    if (block.table.header.empty()) {
      text += "\n\\paragraph{" + latex_escaped(block.heading) + "}\n";
      for (const std::string& line : block.lines) text += latex_escaped(line) + "\n\n";
      for (const std::string& note : block.notes) text += latex_escaped(note) + "\n\n";
      continue;
    }
    std::string header = latex_escaped(block.table.header[0]), rows;
    for (size_t i = 1; i < block.table.header.size(); ++i) header += " & " + latex_escaped(block.table.header[i]);
    for (const auto& row : block.table.rows) rows += row_text(row);
    text += latex_float(lines, "p{0.25\\linewidth}" + std::string(block.table.header.size() - 1, 'r'), header, rows,
                        block.notes, ++number);
  }
  return text;
}

}  // namespace lra
