#include "lib/device/entmax_row.h"
#include "lib/device/families.h"

namespace lra::device {

std::unique_ptr<ScoreRows> entmax_rows(float alpha, bool learnt) { return mapped_rows(Entmax{alpha, learnt}); }

}  // namespace lra::device
