// Documents as LaTeX. Every character of a record is escaped; those outside ASCII, which pdflatex may not know, become
// question marks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/document.h"

namespace lra {

std::string latex_escaped(std::string_view text);
std::string latex_name(std::string_view text);  // in typewriter, may break after ':' and ','

// A float with a caption above and notes, escaped here, below. The other parts are LaTeX.
std::string latex_float(const std::string& caption, const std::string& columns, const std::string& header,
                        const std::string& rows, const std::vector<std::string>& notes, int number);

// Tables are labelled tab:lra-N, the first N is `number` + 1.
std::string as_latex(const Document& document, int number = 0);

}  // namespace lra
