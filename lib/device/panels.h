// Driver of score rows (score_panel.h): attention whose P is a function of rows of scores.
#pragma once

#include <memory>

#include "lib/device/attention.h"
#include "lib/device/score_panel.h"

namespace lra::device {

struct PanelSizes {
  int64_t queries = 256;              // of a sequence in a panel
  int64_t floats = int64_t{1} << 26;  // of a panel, unless a single sequence has more
};

// score_scale: scores are this times q·k.
std::unique_ptr<Attention> make_panels(const AttentionShape& shape, std::unique_ptr<ScoreRows> rows, float score_scale,
                                       bool causal, PanelSizes sizes);

}  // namespace lra::device
