// Figures that papers and code bases print, beside which a comparison may be shown. Set-ups differ from ours and from
// each other; results/published holds one file a source (schema/lra-published-1.schema.json).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/util/json.h"
#include "results/document.h"

namespace lra {

const std::map<std::string, std::string>& published_files();  // name, text

// The rows that have a figure for one of the tasks, each with its source.
Json published_rows(const std::vector<std::string>& tasks);

// A table a source, place of print and set-up, in percent as printed. Averages are our own, over the tasks shown.
Document published_document(const std::vector<std::string>& tasks);

}  // namespace lra
