// Where the time of a training step goes: every thread books its time on the innermost phase it is in. Off by default,
// when entering a phase costs one load; `lra-bench --profile` turns it on.
#pragma once

#include <array>
#include <cstdint>

namespace lra {

enum class Phase {
  kOther,        // outside all others; not booked
  kData,         // waiting for examples
  kEmbedding,    // and pooling
  kNorm,         // layer norms
  kLinear,       // linear layers of the encoder
  kElementwise,  // GELU, dropout and residual connections
  kPacking,      // attention: operands brought into the form that its products want
  kScores,       // attention: products
  kWeights,      // attention: score activation and its derivative
  kMasks,        // attention: dropout masks drawn
  kHead,         // the classifier's head and the loss
  kSum,          // gradients of examples summed
  kUpdate,       // gradient norm and optimizer
  kCount
};
constexpr int kPhaseCount = static_cast<int>(Phase::kCount);
const char* phase_name(Phase phase);

using PhaseSeconds = std::array<double, kPhaseCount>;

// From here on; call while no other thread is in a phase.
void start_phases();
// Seconds of all threads since then; stops booking.
PhaseSeconds stop_phases();

namespace phases {
extern bool on;
Phase enter(Phase phase);  // returns the phase before
}  // namespace phases

class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) : on_(phases::on) {
    if (on_) before_ = phases::enter(phase);
  }
  ~PhaseScope() {
    if (on_) phases::enter(before_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  bool on_;
  Phase before_ = Phase::kOther;
};

}  // namespace lra
