// Grey pictures for lra-data show: drawn with characters or enlarged for a PNG file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/png.h"

namespace lra {

enum class DrawStyle {
  kAscii,    // " .:-=+*#%@", one character a shade
  kUnicode,  // the same with shade blocks
  k256,      // half blocks in 24 steps of grey, as most terminals know
  k24bit,    // half blocks in all 256 greys
};

// Lines, each with its end; the picture is scaled down to at most `columns` characters a line, never up (a pixel takes
// two shade characters where there is room, since a character is twice as high as wide).
std::string draw_picture(const GreyPicture& picture, DrawStyle style, int columns);

// Each pixel becomes factor x factor pixels.
GreyPicture enlarge(const GreyPicture& picture, int factor);

// How many of so many pictures stand side by side on a sheet that is about square.
int64_t sheet_columns(int64_t count);
// Pictures of one size side by side, row by row, with a grey gap between them.
GreyPicture contact_sheet(const std::vector<GreyPicture>& pictures, int gap);

// Of the terminal behind stdout: columns (80 where it is none) and the best style it can show.
int stdout_columns();
DrawStyle stdout_style();

}  // namespace lra
