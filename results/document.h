// Headings, lines and tables as plain text for terminals or as Markdown.
#pragma once

#include <string>
#include <vector>

namespace lra {

struct Table {
  std::vector<std::string> header;  // the first column is a name, the others are aligned to the right
  std::vector<std::vector<std::string>> rows;
};

struct Block {
  std::string heading;  // may be empty
  std::vector<std::string> lines;
  Table table;                     // no header: none
  std::vector<std::string> notes;  // below the table
};

using Document = std::vector<Block>;

// Whether a cell is a figure with a mark behind it: "37.25c" not above chance, "95114!" for another size.
bool has_mark(const std::string& cell);

// At most `width` columns where the figures leave room for names; a longer name gets a line of its own.
std::string as_text(const Document& document, size_t width = 100);
std::string as_markdown(const Document& document);

}  // namespace lra
