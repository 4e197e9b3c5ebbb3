// Drawings of attention matrices: one with axes, title and colour bar, and a sheet of many small ones.
#pragma once

#include <string>
#include <vector>

#include "lib/diagnostics/canvas.h"
#include "lib/diagnostics/maps.h"

namespace lra {

// Colours of a map. Weights of both signs: blue, white, red, from -high to high, which is the 99.5th percentile of
// |value|. Non-negative ones: white to dark, from the 0.5th to the 99.5th percentile. Values beyond take the colour of
// the limit.
struct ColourScale {
  bool diverging = false;
  double low = 0.0, high = 0.0;

  static ColourScale of(const AttentionMap& map);
  Colour colour(double value) const;  // grey of NaN: no entry
};

// Values a side that a drawing has room for; maps of up to half of it are enlarged by whole pixels.
inline constexpr int kMapSide = 640;

// title: lines above the map, the first one larger.
Canvas draw_map(const AttentionMap& map, const std::vector<std::string>& title);

// One row of the sheet: its maps, in the same order of layers and heads in every row.
struct SheetRow {
  std::vector<std::string> label;  // lines to the left
  std::vector<AttentionMap> maps;
};

inline constexpr int kMostSheetRows = 80, kMostSheetColumns = 64;

Canvas draw_sheet(const std::vector<SheetRow>& rows, const std::string& title);

}  // namespace lra
