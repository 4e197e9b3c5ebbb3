// From padded token rows, as data sets give them, to real tokens with their places. Padding may lie anywhere (black
// pixels), so places are kept and not counted.
#include "lib/model/example.h"

#include <algorithm>

namespace lra {

Sequence make_sequence(const std::vector<int32_t>& padded_ids) {
  Sequence sequence;
  const size_t tokens = padded_ids.size() - static_cast<size_t>(std::count(padded_ids.begin(), padded_ids.end(), 0));
  sequence.ids.reserve(tokens);
  sequence.places.reserve(tokens);
  for (size_t place = 0; place < padded_ids.size(); ++place) {
    if (padded_ids[place] == 0) continue;
    sequence.ids.push_back(padded_ids[place]);
    sequence.places.push_back(static_cast<int32_t>(place));
  }
  return sequence;
}

}  // namespace lra
