// Pieces of a self-contained HTML page: nothing is loaded from elsewhere and no script runs.
#pragma once

#include <string>
#include <string_view>

#include "results/document.h"

namespace lra {

std::string html_escaped(std::string_view text);  // for text and for attributes in quotes

// In a box that scrolls by itself. The first column names the rows.
std::string html_table(const Table& table, const std::string& caption);
std::string html_lines(const std::vector<std::string>& lines, const char* element);  // "p", "li"
// Heading (h2 or h3), lines, table, notes.
std::string html_block(const Block& block, int level);

std::string base64(std::string_view bytes);

// The whole page around a body.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace lra
